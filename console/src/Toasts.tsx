import "@mantine/notifications/styles.layer.css";
import { Notifications } from "@mantine/notifications";

/** What is said in a corner. Not part of the first load: nothing is said that early. */
export default function Toasts() {
  return <Notifications position="bottom-right" />;
}
