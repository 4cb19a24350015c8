import { Button } from "@mantine/core";
import { Link } from "react-router";
import { Empty, IconFileSearch, Page } from "../components";
import { useText } from "../i18n";
import { shellTexts } from "./shell.texts";

export function NotFound() {
  const t = useText(shellTexts);
  return (
    <Page title={t("notFound")}>
      <Empty
        icon={IconFileSearch}
        title={t("notFoundText")}
        action={
          <Button component={Link} to="/" variant="light">
            {t("home")}
          </Button>
        }
      />
    </Page>
  );
}
