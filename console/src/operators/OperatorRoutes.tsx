import { lazy } from "react";
import { Navigate, Route, Routes } from "react-router";
import { NotFound } from "../shell/NotFound";
import { useChanges } from "./live/useChanges";

const OverviewPage = lazy(() => import("./overview/OverviewPage"));
const TasksPage = lazy(() => import("./tasks/TasksPage"));
const TaskPage = lazy(() => import("./tasks/TaskPage"));
const FailuresPage = lazy(() => import("./tasks/FailuresPage"));
const WebhooksPage = lazy(() => import("./webhooks/WebhooksPage"));
const SubmitPage = lazy(() => import("./tasks/SubmitPage"));
const BulksPage = lazy(() => import("./tasks/BulksPage"));
const BulkPage = lazy(() => import("./tasks/BulkPage"));
const QueuesPage = lazy(() => import("./queues/QueuesPage"));
const WorkersPage = lazy(() => import("./workers/WorkersPage"));
const SchedulesPage = lazy(() => import("./schedules/SchedulesPage"));
const SchedulePage = lazy(() => import("./schedules/SchedulePage"));
const ScheduleFormPage = lazy(() => import("./schedules/ScheduleFormPage"));
const RunsPage = lazy(() => import("./runs/RunsPage"));
const RunPage = lazy(() => import("./runs/RunPage"));
const LocksPage = lazy(() => import("./locks/LocksPage"));
const AuditPage = lazy(() => import("./audit/AuditPage"));
const EventPage = lazy(() => import("./audit/EventPage"));
const UsersPage = lazy(() => import("./users/UsersPage"));
const UserPage = lazy(() => import("./users/UserPage"));
const PlansPage = lazy(() => import("./plans/PlansPage"));
const LedgerPage = lazy(() => import("./ledger/LedgerPage"));
const OutboxPage = lazy(() => import("./outbox/OutboxPage"));
const ConfigsPage = lazy(() => import("./configs/ConfigsPage"));
const RisksPage = lazy(() => import("./risks/RisksPage"));
const ArchivesPage = lazy(() => import("./archives/ArchivesPage"));
const SettingsPage = lazy(() => import("./settings/SettingsPage"));

/** The pages under /operators. They are loaded on the first visit. */
export default function OperatorRoutes() {
  useChanges();
  return (
    <Routes>
      <Route index element={<Navigate to="overview" replace />} />
      <Route path="overview" element={<OverviewPage />} />
      <Route path="tasks" element={<TasksPage />} />
      <Route path="tasks/new" element={<SubmitPage />} />
      <Route path="tasks/failures" element={<FailuresPage />} />
      <Route path="webhooks" element={<WebhooksPage />} />
      <Route path="tasks/bulk" element={<BulksPage />} />
      <Route path="tasks/bulk/:taskId" element={<BulkPage />} />
      <Route path="tasks/:taskId" element={<TaskPage />} />
      <Route path="queues" element={<QueuesPage />} />
      <Route path="workers" element={<WorkersPage />} />
      <Route path="schedules" element={<SchedulesPage />} />
      <Route path="schedules/new" element={<ScheduleFormPage />} />
      <Route path="schedules/:uid" element={<SchedulePage />} />
      <Route path="schedules/:uid/edit" element={<ScheduleFormPage />} />
      <Route path="runs" element={<RunsPage />} />
      <Route path="runs/:uid" element={<RunPage />} />
      <Route path="locks" element={<LocksPage />} />
      <Route path="audit" element={<AuditPage />} />
      <Route path="audit/:eventId" element={<EventPage />} />
      <Route path="users" element={<UsersPage />} />
      <Route path="users/:userId" element={<UserPage />} />
      <Route path="plans" element={<PlansPage />} />
      <Route path="ledger" element={<LedgerPage />} />
      <Route path="outbox" element={<OutboxPage />} />
      <Route path="configs" element={<ConfigsPage />} />
      <Route path="risks" element={<RisksPage />} />
      <Route path="archives" element={<ArchivesPage />} />
      <Route path="settings" element={<SettingsPage />} />
      <Route path="*" element={<NotFound />} />
    </Routes>
  );
}
