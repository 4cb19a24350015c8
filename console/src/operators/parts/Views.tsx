import { ActionIcon, Button, Menu, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { api, ifMatch, keys, type SavedView } from "../../api";
import { commonTexts, copyText, IconBookmark, IconLink, IconTrash, tell, useAct } from "../../components";
import { useText } from "../../i18n";
import { partTexts } from "./parts.texts";

async function readViews(): Promise<{ views: SavedView[]; version: number }> {
  const { data: found, response } = await api.GET("/v1/me/views");
  const version = Number(/\d+/.exec(response.headers.get("ETag") ?? "")?.[0] ?? 0);
  return { views: found?.views ?? [], version };
}

/** Filters under a name: a view is an address, so it can be saved and shared. */
export function Views() {
  const t = useText(partTexts);
  const common = useText(commonTexts);
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const { act } = useAct(keys.views);
  const [name, setName] = useState("");
  const query = useQuery({ queryKey: keys.views, queryFn: readViews, staleTime: 60_000 });
  const saved = query.data?.views ?? [];
  const here = saved.filter((view) => view.path.split("?", 1)[0] === pathname);
  const write = (views: SavedView[], done?: string) => {
    const headers = ifMatch(query.data?.version ?? 0);
    return act(() => api.PUT("/v1/me/views", { body: { views }, headers }), done);
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "") return;
    const views = [...saved.filter((view) => view.name !== wanted), { name: wanted, path: `${pathname}${search}` }];
    if (await write(views, t("viewSaved"))) setName("");
  };
  return (
    <Menu position="bottom-end" width={280} closeOnItemClick={false}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconBookmark size={16} />}>
          {t("views")}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {here.length === 0 && (
          <Text size="sm" c="dimmed" px="sm" py="xs">
            {t("noViews")}
          </Text>
        )}
        {here.map((view) => (
          <Menu.Item
            key={view.name}
            component="div"
            onClick={() => void navigate(view.path)}
            rightSection={
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-label={t("removeView", { name: view.name })}
                onClick={(event) => {
                  event.stopPropagation();
                  void write(saved.filter((each) => each.name !== view.name));
                }}
              >
                <IconTrash size={14} />
              </ActionIcon>
            }
          >
            {view.name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <form onSubmit={(event) => void save(event)}>
          <TextInput
            mx="xs"
            my={6}
            size="sm"
            aria-label={t("viewName")}
            placeholder={t("viewName")}
            value={name}
            maxLength={80}
            onChange={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => event.stopPropagation()}
            rightSectionWidth={72}
            rightSection={
              <Button size="compact-xs" type="submit" disabled={name.trim() === ""} aria-label={t("saveView")}>
                {common("save")}
              </Button>
            }
          />
        </form>
        <Menu.Item
          leftSection={<IconLink size={16} />}
          closeMenuOnClick
          onClick={() => void copyText(location.href).then(() => tell(t("linkCopied")))}
        >
          {t("copyLink")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
