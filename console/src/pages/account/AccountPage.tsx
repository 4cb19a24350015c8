import { NotFound } from "../../shell/NotFound";

export default function AccountPage() {
  return <NotFound />;
}
