import { texts } from "../../i18n";

export const settingTexts = texts(
  {
    title: "Settings",
    text: "The settings of this API process. Secrets are hidden. To change a setting, set its environment variable and restart.",
    search: "Search",
    onlyChosen: "Only changed settings",
    chosen: "chosen",
    standard: "default",
    unset: "not set",
    nothing: "No settings match.",
  },
  {
    title: "设置",
    text: "当前 API 进程的设置。机密内容已隐藏。如需更改，请设置对应的环境变量并重启。",
    search: "搜索",
    onlyChosen: "仅显示已更改的",
    chosen: "已选择",
    standard: "默认",
    unset: "未设置",
    nothing: "没有符合的设置。",
  },
);
