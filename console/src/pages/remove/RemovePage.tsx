import { NotFound } from "../../shell/NotFound";

export default function RemovePage() {
  return <NotFound />;
}
