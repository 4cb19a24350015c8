import { NotFound } from "../../shell/NotFound";

export default function NotificationsPage() {
  return <NotFound />;
}
