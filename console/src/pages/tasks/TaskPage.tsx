import { NotFound } from "../../shell/NotFound";

export default function TaskPage() {
  return <NotFound />;
}
