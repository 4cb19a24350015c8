import { texts } from "../../i18n";

export const notificationTexts = texts(
  {
    title: "Notifications",
    text: "They come by themselves; nothing has to be loaded again.",
    readAll: "Mark all as read",
    unreadOnly: "Only unread",
    none: "No notifications",
    noneText: "You are told here when a task is done or has failed.",
    open: "Open",
    markRead: "Mark as read",
    unread: "Unread",
  },
  {
    title: "通知",
    text: "会自动出现，无需刷新。",
    readAll: "全部标为已读",
    unreadOnly: "仅未读",
    none: "没有通知",
    noneText: "任务完成或失败时会在这里告诉您。",
    open: "打开",
    markRead: "标为已读",
    unread: "未读",
  },
);
