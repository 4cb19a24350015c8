import { NotFound } from "../../shell/NotFound";

export default function WebhooksPage() {
  return <NotFound />;
}
