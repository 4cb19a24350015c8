import { texts } from "../../i18n";

export const settingTexts = texts(
  {
    title: "Settings",
    text: "What this deployment has chosen, in the API process that answers. Secrets are hidden. To change one, set its variable and restart.",
    search: "Search",
    onlyChosen: "Only those that were chosen",
    chosen: "chosen",
    standard: "default",
    unset: "not set",
    nothing: "No setting fits.",
  },
  {
    title: "设置",
    text: "此部署所选的设置（以应答的 API 进程为准）。机密内容已隐藏。更改请设置对应的环境变量并重启。",
    search: "搜索",
    onlyChosen: "仅显示已选择的",
    chosen: "已选择",
    standard: "默认",
    unset: "未设置",
    nothing: "没有符合的设置。",
  },
);
