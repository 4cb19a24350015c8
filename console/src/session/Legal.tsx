import { Anchor, Text } from "@mantine/core";
import { useText } from "../i18n";
import { useCapabilities } from "./capabilities";
import { recoveryTexts } from "./recovery.texts";

/** Links to the terms and the privacy notice, if the operators have set them. */
export function LegalLine({ agree = false }: { agree?: boolean }) {
  const t = useText(recoveryTexts);
  const legal = useCapabilities().data?.configs.legal as { terms?: string | null; privacy?: string | null } | undefined;
  const links = (["terms", "privacy"] as const).flatMap((name) => {
    const href = legal?.[name];
    // The server takes web addresses only; anything else is never made a link.
    return href && /^https?:\/\//.test(href) ? [{ name, href }] : [];
  });
  if (links.length === 0) return null;
  return (
    <Text size="sm" c="dimmed" mt="md">
      {agree && <>{t("agree")} </>}
      {links.map(({ name, href }, index) => (
        <span key={name}>
          {index > 0 && " · "}
          <Anchor href={href} target="_blank" rel="noreferrer" underline="always">
            {t(name)}
          </Anchor>
        </span>
      ))}
    </Text>
  );
}
