import { Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";
import { IconCheck } from "../components";
import { setLanguage, useLanguage, useText } from "../i18n";
import { Mark } from "../shell/Mark";
import { AnnouncementLine, ContactLine } from "../shell/Notices";
import { useCapabilities } from "./capabilities";
import classes from "./Entrance.module.css";
import { LegalLine } from "./Legal";
import { LoginForm } from "./LoginForm";
import { RegisterForm } from "./RegisterForm";
import { recoveryTexts } from "./recovery.texts";
import { sessionTexts } from "./session.texts";

/** The way in, beside a few words about what is behind it. */
export function Entrance({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  const t = useText(sessionTexts);
  useEffect(() => {
    document.title = `${title} · Headrace`;
  }, [title]);
  return (
    <div className={classes.entrance}>
      <aside className={classes.picture}>
        <Group gap="sm">
          <Mark size={40} />
          <Text fw={600} fz="xl">
            Headrace
          </Text>
        </Group>
        <div>
          <p className={classes.tagline}>{t("tagline")}</p>
          <Stack gap="sm" mt="lg">
            {[t("point1"), t("point2"), t("point3")].map((point) => (
              <Group key={point} gap="sm" wrap="nowrap" align="flex-start">
                <IconCheck className={classes.tick} />
                <span>{point}</span>
              </Group>
            ))}
          </Stack>
        </div>
        <Waves />
      </aside>
      <main className={classes.form}>
        <Group className={classes.switches} gap={4}>
          <OtherLanguage />
        </Group>
        <div className={classes.box}>
          <AnnouncementLine />
          <div className={classes.small}>
            <Mark size={44} />
          </div>
          <Title order={1} fz="xl">
            {title}
          </Title>
          <Text c="dimmed" size="sm" mb="lg">
            {text}
          </Text>
          {children}
          <ContactLine />
        </div>
      </main>
    </div>
  );
}

/** There are two languages: a menu for them would be a large part of the first load. */
function OtherLanguage() {
  const [other, name] = useLanguage() === "zh" ? (["en", "English"] as const) : (["zh", "简体中文"] as const);
  return (
    <Button variant="subtle" color="gray" size="compact-sm" lang={other} onClick={() => setLanguage(other)}>
      {name}
    </Button>
  );
}

export function LoginPage() {
  const t = useText(sessionTexts);
  const recovery = useText(recoveryTexts);
  const capabilities = useCapabilities();
  const offer = capabilities.data?.accounts;
  return (
    <Entrance title={t("signInTitle")} text={t("signInText")}>
      <LoginForm />
      <Text size="sm" mt="md">
        <Anchor component={Link} to="/forgot-password" underline="always">
          {recovery("forgot")}
        </Anchor>
      </Text>
      <Text size="sm" mt="lg" c="dimmed">
        {offer?.registration === "closed" ? (
          t("registrationClosed")
        ) : (
          <>
            {t("noAccount")}{" "}
            <Anchor component={Link} to="/register" underline="always">
              {t("register")}
            </Anchor>
          </>
        )}
      </Text>
      {offer?.logins.includes("wechat") && (
        <Text size="sm" mt="xs" c="dimmed">
          {t("wechatHint")}
        </Text>
      )}
      <LegalLine />
    </Entrance>
  );
}

export function RegisterPage() {
  const t = useText(sessionTexts);
  const capabilities = useCapabilities();
  return (
    <Entrance title={t("registerTitle")} text={t("registerText")}>
      <RegisterForm minLength={capabilities.data?.accounts.password_min_length ?? 12} />
      <Text size="sm" mt="lg" c="dimmed">
        {t("haveAccount")}{" "}
        <Anchor component={Link} to="/login" underline="always">
          {t("signIn")}
        </Anchor>
      </Text>
      <LegalLine agree />
    </Entrance>
  );
}

function Waves() {
  return (
    <svg className={classes.waves} viewBox="0 0 600 160" preserveAspectRatio="none" aria-hidden="true">
      <path d="M0 60c100-50 200-50 300 0s200 50 300 0v100H0z" opacity=".18" />
      <path d="M0 90c100-40 200-40 300 0s200 40 300 0v70H0z" opacity=".22" />
      <path d="M0 120c100-30 200-30 300 0s200 30 300 0v40H0z" opacity=".28" />
    </svg>
  );
}
