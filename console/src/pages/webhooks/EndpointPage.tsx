import { NotFound } from "../../shell/NotFound";

export default function EndpointPage() {
  return <NotFound />;
}
