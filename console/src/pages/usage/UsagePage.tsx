import { NotFound } from "../../shell/NotFound";

export default function UsagePage() {
  return <NotFound />;
}
