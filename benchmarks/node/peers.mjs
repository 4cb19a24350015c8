// Queues of Node, driven by benchmarks/node_peers.py:
//   node peers.mjs PEER VERB DATABASE_URL [COUNT] [PROGRESS_FILE]
// `work` says "ready", works from the line "go" on, counts its jobs in PROGRESS_FILE and ends when standard input does. All other
// verbs print one JSON value: seconds, or for `pickup` the submission times in nanoseconds.
import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { makeWorkerUtils, run, Logger } from 'graphile-worker'
import { PgBoss } from 'pg-boss'

const [peer, verb, url, count = '0', progressFile] = process.argv.slice(2)
const total = Number(count)
const QUEUE = 'noop'
const CHUNK = 1000
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1e6)
const logger = new Logger(() => () => {})

// The settings that served each best; `graphile-default` is what one gets without choosing any.
const TUNED = {
  concurrentJobs: 24,
  preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
}

let handled = 0
const progress = progressFile ? openSync(progressFile, 'w') : undefined
const starts = []
function note(jobs) {
  handled += jobs.length
  if (process.env.TIMES) for (const job of jobs) starts.push([job.n, now()])
  if (progress !== undefined && (handled % 500 === 0 || jobs.length > 1 || handled >= total))
    writeSync(progress, String(handled).padStart(12), 0)
}

const graphile = {
  async open() {
    const utils = await makeWorkerUtils({ connectionString: url, logger })
    await utils.migrate()
    return {
      one: (n) => utils.addJob(QUEUE, { n }),
      many: (first, size) =>
        utils.addJobs(Array.from({ length: size }, (_, k) => ({ identifier: QUEUE, payload: { n: first + k } }))),
      close: () => utils.release(),
    }
  },
  async work() {
    const taskList = { [QUEUE]: async (payload) => note([payload]) }
    const options = peer === 'graphile' ? TUNED : {}
    const runner = await run({ connectionString: url, logger, taskList, noHandleSignals: true, ...options })
    return () => runner.stop()
  },
}

const pgboss = {
  async start() {
    const boss = new PgBoss({ connectionString: url, useListenNotify: true })
    boss.on('error', () => {})
    await boss.start()
    if (!(await boss.getQueue(QUEUE))) await boss.createQueue(QUEUE, { notify: true })
    return boss
  },
  async open() {
    const boss = await this.start()
    return {
      one: (n) => boss.send(QUEUE, { n }),
      many: (first, size) => boss.insert(QUEUE, Array.from({ length: size }, (_, k) => ({ data: { n: first + k } }))),
      close: () => boss.stop({ graceful: false }),
    }
  },
  async work() {
    const boss = await this.start()
    await boss.work(QUEUE, { batchSize: CHUNK, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }, async (jobs) => {
      note(jobs.map((job) => job.data))
    })
    return () => boss.stop({ graceful: true, timeout: 5000 })
  },
}

const system = peer.startsWith('graphile') ? graphile : pgboss
const seconds = (from) => (performance.now() - from) / 1000

if (verb === 'work') {
  const lines = createInterface({ input: process.stdin })
  console.log('ready')
  let stop
  lines.once('line', async () => (stop = await system.work()))
  lines.once('close', async () => {
    if (process.env.TIMES) console.log(JSON.stringify(starts))
    await stop?.()
    process.exit(0)
  })
} else {
  const queue = await system.open()
  const from = performance.now()
  const times = []
  if (verb === 'fill') for (let n = 0; n < total; n += CHUNK) await queue.many(n, Math.min(CHUNK, total - n))
  if (verb === 'single') for (let n = 0; n < total; n++) await queue.one(n)
  if (verb === 'pickup')
    for (let n = 0; n < total; n++) {
      times.push(now())
      await queue.one(n)
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  console.log(JSON.stringify(verb === 'pickup' ? times : seconds(from)))
  await queue.close()
  process.exit(0)
}
