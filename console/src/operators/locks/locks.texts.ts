import { texts } from "../../i18n";

export const lockTexts = texts(
  {
    title: "Locks",
    text: "Names that one holder has at a time, over all machines.",
    key: "Name",
    holder: "Holder",
    fence: "Fence",
    purpose: "Purpose",
    acquired: "Taken",
    expires: "Until",
    release: "Release by force",
    askRelease: "Release {key} by force?",
    releaseText:
      "Whoever holds it may still be at work. Their next renewal is refused, and writes with its fence are recognised as late.",
    released: "{key} is free.",
    none: "No locks",
    noneText: "Programs take them through the API, the CLI or the client.",
  },
  {
    title: "锁",
    text: "同一时间只有一个持有者的名称，跨所有机器。",
    key: "名称",
    holder: "持有者",
    fence: "栅栏号",
    purpose: "用途",
    acquired: "取得时间",
    expires: "有效至",
    release: "强制释放",
    askRelease: "强制释放 {key}？",
    releaseText: "持有者可能仍在工作；其下次续期将被拒绝，带旧栅栏号的写入会被识别为过期。",
    released: "{key} 已释放。",
    none: "没有锁",
    noneText: "程序可通过 API、命令行或客户端取得锁。",
  },
);
