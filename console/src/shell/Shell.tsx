import {
  ActionIcon,
  AppShell,
  Avatar,
  Burger,
  Group,
  Indicator,
  Menu,
  NavLink,
  Popover,
  ScrollArea,
  Text,
  UnstyledButton,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { Link, useLocation, useNavigate } from "react-router";
import { api, useConnectionLost } from "../api";
import {
  Announcer,
  commonTexts,
  IconBell,
  IconExternalLink,
  IconLogout,
  IconPlugConnectedX,
  IconUser,
  Loading,
} from "../components";
import { useText, wordFor } from "../i18n";
import { useUnread } from "../live/notifications";
import { OPERATOR_GROUPS } from "../operators/navigation";
import { placeTexts } from "../operators/navigation.texts";
import { signedOut, useMe } from "../session/store";
import { Mark } from "./Mark";
import { AnnouncementLine, ContactLine, QuotaLine } from "./Notices";
import { type Destination, MINE } from "./navigation";
import { LanguageSwitch, ThemeSwitch } from "./preferences";
import classes from "./Shell.module.css";
import { shellTexts } from "./shell.texts";

const BellPanel = lazy(() => import("../pages/notifications/BellPanel"));
const CommandPalette = lazy(() => import("./CommandPalette"));

/** What is around every page: where one can go, who one is, and whether something new has come. */
export function Shell({ children }: { children: ReactNode }) {
  const t = useText(shellTexts);
  const { user } = useMe();
  const [opened, { toggle, close }] = useDisclosure();
  const { pathname } = useLocation();
  const lost = useConnectionLost();
  const common = useText(commonTexts);
  const [palette, setPalette] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setPalette((now) => !now);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page is what closes the menu
  useEffect(() => {
    close();
    window.scrollTo(0, 0);
    document.querySelector("nav [aria-current=page]")?.scrollIntoView({ block: "nearest" });
  }, [pathname, close]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 248, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={{ base: "md", md: "xl" }}
    >
      <Announcer />
      <Suspense>{palette && <CommandPalette onClose={() => setPalette(false)} />}</Suspense>
      <a href="#content" className={classes.skip}>
        {t("skip")}
      </a>
      <AppShell.Header className={classes.header}>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t("menu")} />
            <UnstyledButton component={Link} to="/" className={classes.brand} aria-label="Headrace">
              <Mark size={28} />
              <Text fw={600} fz="lg" component="span">
                Headrace
              </Text>
            </UnstyledButton>
          </Group>
          <Group gap={4} wrap="nowrap">
            <LanguageSwitch />
            <ThemeSwitch />
            <Bell />
            <Person />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.navbar} aria-label={t("menu")}>
        <AppShell.Section grow component={ScrollArea} type="auto" scrollbarSize={6} p="sm">
          {user.role === "ADMIN" && (
            <>
              {OPERATOR_GROUPS.map(({ name, places }) => (
                <div key={name}>
                  <div className={classes.group}>{wordFor(placeTexts, name)}</div>
                  <Links destinations={places} pathname={pathname} />
                </div>
              ))}
              <div className={classes.group}>{t("mine")}</div>
            </>
          )}
          <Links destinations={MINE} pathname={pathname} />
        </AppShell.Section>
        <AppShell.Section p="sm" className={classes.foot}>
          <ContactLine />
          <NavLink
            component="a"
            href="/docs"
            label={t("apiDocs")}
            leftSection={<IconExternalLink />}
            className={classes.link}
          />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main>
        {lost && (
          <div className={classes.lost} role="status">
            <IconPlugConnectedX />
            {common("connectionLost")}
          </div>
        )}
        <AnnouncementLine />
        {user.role !== "ADMIN" && <QuotaLine />}
        <div id="content" tabIndex={-1} className={classes.content}>
          {children}
        </div>
      </AppShell.Main>
    </AppShell>
  );
}

function Links({ destinations, pathname }: { destinations: readonly Destination[]; pathname: string }) {
  return destinations.map(({ to, icon: Drawn, texts, name }) => {
    const isHere = pathname === to || pathname.startsWith(`${to}/`);
    return (
      <NavLink
        key={to}
        component={Link}
        to={to}
        label={wordFor(texts, name)}
        leftSection={<Drawn />}
        active={isHere}
        aria-current={isHere ? "page" : undefined}
        className={classes.link}
      />
    );
  });
}

function Bell() {
  const t = useText(shellTexts);
  const unread = useUnread();
  const [opened, { toggle, close }] = useDisclosure();
  const name = unread ? t("unread", { n: unread }) : t("notifications");
  return (
    <Indicator
      disabled={!unread}
      label={unread > 99 ? "99+" : unread}
      size={17}
      offset={6}
      color="red.8"
      styles={{ indicator: { pointerEvents: "none" } }}
    >
      <Popover opened={opened} onChange={toggle} position="bottom-end" shadow="md" trapFocus returnFocus>
        <Popover.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={name}
            title={name}
            data-testid="bell"
            onClick={toggle}
          >
            <IconBell />
          </ActionIcon>
        </Popover.Target>
        <Popover.Dropdown p={0}>
          <Suspense fallback={<Loading lines={3} />}>{opened && <BellPanel onClose={close} />}</Suspense>
        </Popover.Dropdown>
      </Popover>
    </Indicator>
  );
}

function Person() {
  const t = useText(shellTexts);
  const { user } = useMe();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const name = user.username ?? user.email ?? user.id;
  const leave = async () => {
    await api.POST("/v1/auth/logout").catch(() => {});
    queries.clear();
    signedOut();
    void navigate("/login");
  };
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <UnstyledButton aria-label={t("account")} className={classes.person}>
          <Avatar size={32} radius="xl" className={classes.avatar}>
            {name.slice(0, 1).toUpperCase()}
          </Avatar>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} truncate>
            {name}
          </Text>
        </Menu.Label>
        <Menu.Item component={Link} to="/account" leftSection={<IconUser size={16} />}>
          {t("account")}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void leave()}>
          {t("signOut")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
