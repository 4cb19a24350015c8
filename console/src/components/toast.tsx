import { notifications } from "@mantine/notifications";
import { IconAlertTriangle, IconCheck } from "./icons";
import { errorWords } from "./ProblemAlert";

/** Say that something was done. */
export function tell(message: string): void {
  notifications.show({ message, color: "water", icon: <IconCheck size={16} />, autoClose: 4000 });
}

/** Say that something was not done, and why. */
export function tellError(error: unknown): void {
  notifications.show({
    message: errorWords(error),
    color: "red.8",
    icon: <IconAlertTriangle size={16} />,
    autoClose: 8000,
  });
}
