import { NotFound } from "../../shell/NotFound";

export default function TasksPage() {
  return <NotFound />;
}
