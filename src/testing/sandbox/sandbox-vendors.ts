import { type Clock, systemClock } from '../../core/clock.ts'
import { checkMembers, memberNames } from '../../core/known-members.ts'
import type { Transport } from '../../transport/transport.ts'
import { type Preset, presets } from '../../vendors/presets/presets.ts'
import { BEDROCK_OPERATIONS, bedrockMessages } from './amazon-bedrock/amazon-bedrock.ts'
import { ANTHROPIC_COUNT_TOKENS, anthropicBatches, anthropicMessages } from './anthropic/anthropic.ts'
import { ANTHROPIC_ERRORS } from './anthropic/anthropic-request.ts'
import { AZURE_OPERATIONS } from './azure/azure-openai.ts'
import type { BatchRun } from './batches/vendor-batches.ts'
import { COHERE_RERANK } from './cohere/cohere-rerank.ts'
import { DASHSCOPE_ERRORS, DASHSCOPE_OPERATIONS, dashscopeBatches } from './dashscope/dashscope.ts'
import { dashscopeVideos } from './dashscope/dashscope-videos.ts'
import { faultQueue, type QueuedFault } from './fault.ts'
import { PICTURE_FILES, SOUND_FILES, VIDEO_FILES } from './files/stored-files.ts'
import { GEMINI_OPERATIONS } from './gemini/gemini.ts'
import { geminiBatches } from './gemini/gemini-batches.ts'
import { GEMINI_INTERACTIONS } from './gemini/gemini-interactions.ts'
import { GEMINI_ERRORS } from './gemini/gemini-request.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, OPENAI_OPERATIONS, openaiBatches } from './openai/openai.ts'
import { OPENAI_IMAGE_EDITS, OPENAI_IMAGES } from './openai/openai-images.ts'
import { OPENAI_INPUT_TOKENS, OPENAI_RESPONSES } from './openai/openai-responses.ts'
import { PRESET_OPERATIONS } from './presets/preset-chat.ts'
import {
  type IncomingCall,
  keyAccess,
  type OperationRow,
  type SandboxCall,
  type SandboxOperation,
  type VendorFacts,
  vendorOperations,
} from './sandbox-operation.ts'
import { playSteps, replyQueue, type ScriptedReply, type VendorConnection } from './scripted-reply.ts'
import { answeredCall, batchedAnswer, memoryTransport, type SocketServer, socketServer } from './transports.ts'
import { VERTEX_OPERATIONS, vertexClaude } from './vertex/vertex.ts'
import { VOYAGE_OPERATIONS } from './voyage/voyage.ts'

/** A receiver of the gateway's own webhooks: `POST` to any path below `/webhooks`. */
const WEBHOOK_RECEIVER = vendorOperations({ vendor: 'receiver', errors: OPENAI_ERRORS })({
  operation: 'webhook',
  post: /^\/webhooks(?:\/|$)/,
  json: () => ({}),
})

/** Makes `GET …/models` of a vendor. Any key is accepted. */
function modelList(facts: VendorFacts, row: Pick<OperationRow, 'get' | 'when'>, body: object): SandboxOperation {
  const operation = vendorOperations({ access: keyAccess(facts.errors), ...facts })
  return operation({ operation: 'models', ...row, json: () => body })
}

function openaiList(...ids: readonly string[]): object {
  const model = { object: 'model', created: 1_767_225_600, owned_by: 'sandbox' }
  return { object: 'list', data: ids.map((id) => ({ id, ...model })) }
}

/** Returns the preset of a path of models, if any. */
function presetOf(path: string): Preset | undefined {
  const id = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/models$/.exec(path)?.[1] ?? ''
  return Object.hasOwn(presets, id) ? presets[id as keyof typeof presets] : undefined
}

const CLAUDE = { id: 'claude-sonnet-5-5', display_name: 'Claude Sonnet 5.5', created_at: '2026-01-01T00:00:00Z' }
const CLAUDE_LIST = { data: [{ type: 'model', ...CLAUDE }], has_more: false, first_id: CLAUDE.id, last_id: CLAUDE.id }
const GEMINI_LIST = { models: [{ name: 'models/gemini-3.8-flash', supportedGenerationMethods: ['generateContent'] }] }

/** The vendors that list their models. */
const MODEL_LISTS: readonly SandboxOperation[] = [
  modelList(
    { vendor: 'anthropic', errors: ANTHROPIC_ERRORS },
    { get: '/v1/models', when: ({ headers }) => headers['anthropic-version'] !== undefined },
    CLAUDE_LIST,
  ),
  modelList(
    { vendor: 'openai', errors: OPENAI_ERRORS, headers: OPENAI_HEADERS },
    { get: '/v1/models' },
    openaiList('gpt-6-sol', 'gpt-6-luna'),
  ),
  modelList({ vendor: 'gemini', errors: GEMINI_ERRORS }, { get: '/v1beta/models' }, GEMINI_LIST),
  modelList(
    { vendor: 'dashscope', errors: DASHSCOPE_ERRORS },
    { get: '/compatible-mode/v1/models' },
    openaiList('qwen-plus'),
  ),
  modelList({ vendor: 'azure', errors: OPENAI_ERRORS }, { get: '/openai/v1/models' }, openaiList('gpt-6-sol')),
  modelList(
    {
      vendor: 'presets',
      errors: OPENAI_ERRORS,
      access(call) {
        if (presetOf(call.path)?.needsKey === true) keyAccess(OPENAI_ERRORS)(call)
      },
    },
    { get: /^\/presets\//, when: ({ path }) => presetOf(path) !== undefined },
    openaiList('small', 'large'),
  ),
]

/** The operations that store nothing. The first match answers a call. Voyage precedes OpenAI, because they share a path. */
const SANDBOX_OPERATIONS: readonly SandboxOperation[] = [
  ...VOYAGE_OPERATIONS,
  ...OPENAI_OPERATIONS,
  OPENAI_IMAGES,
  OPENAI_IMAGE_EDITS,
  OPENAI_RESPONSES,
  OPENAI_INPUT_TOKENS,
  ...PRESET_OPERATIONS,
  ...AZURE_OPERATIONS,
  ...BEDROCK_OPERATIONS,
  COHERE_RERANK,
  ANTHROPIC_COUNT_TOKENS,
  ...GEMINI_OPERATIONS,
  GEMINI_INTERACTIONS,
  ...VERTEX_OPERATIONS,
  ...DASHSCOPE_OPERATIONS,
  ...MODEL_LISTS,
  PICTURE_FILES,
  SOUND_FILES,
  VIDEO_FILES,
  WEBHOOK_RECEIVER,
]

/** Settings of {@link sandboxVendors}. */
export interface SandboxOptions {
  /** Clock for answers, delays and timeouts. Defaults to the machine's clock. */
  readonly clock?: Clock
  /** Delay before each event of a stream, in milliseconds. Default 0. */
  readonly eventDelayMs?: number
  /** Maximum number of calls in `requests`; the newest are kept. Default 1,000. */
  readonly maxRequests?: number
  /** Time that a video task waits before it runs, in milliseconds. Default 1,000. */
  readonly videoPendingMs?: number
  /** Time that a video task runs, in milliseconds. Default 2,000. */
  readonly videoRunningMs?: number
  /** Time that a batch waits before it is processed, and a cancelled one before it ends, in milliseconds. Default 100. */
  readonly batchPendingMs?: number
  /** Time for all requests of a batch together, in milliseconds. Default 200. */
  readonly batchRunningMs?: number
}

const SANDBOX_OPTIONS = memberNames<SandboxOptions>()(
  'clock eventDelayMs maxRequests videoPendingMs videoRunningMs batchPendingMs batchRunningMs',
)

/** Stand-ins for all vendors, in one process and without a network. */
export interface Sandbox {
  /** Serves every vendor's paths on 127.0.0.1. Without a port, or with 0, uses a free one. Cannot listen twice at a time. */
  listen(port?: number): Promise<{ origin: string; port: number }>
  /** Cuts every connection and stops listening. Safe to call twice. */
  close(): Promise<void>
  /** Returns a transport whose calls are answered in process, for any origin. */
  transport(): Transport
  /** Received calls, oldest first. By default, the newest 1,000. */
  readonly requests: readonly SandboxCall[]
  /** Returns the oldest call not yet returned by this method, or waits for the next. */
  nextRequest(): Promise<SandboxCall>
  /**
   * Received webhooks, oldest first, while they are among `requests`. On a port, every path below `/webhooks` accepts them:
   * `webhook_url: \`${origin}/webhooks\``. They are calls to the vendor `receiver`, so faults and replies may reject them.
   */
  readonly webhooks: readonly SandboxCall[]
  /** Returns the oldest webhook not yet returned by this method, or waits for the next. */
  nextWebhook(): Promise<SandboxCall>
  /** Number of open connections: sockets (including idle ones) and calls in process. */
  readonly openConnections: number
  /** Number of calls that are being answered. */
  readonly openCalls: number
  /** Number of callers that disconnected before their answer had ended. */
  readonly aborted: number
  /** Returns when a caller disconnected, in Unix milliseconds: the oldest not yet returned, or the next. */
  nextAbort(): Promise<number>
  /**
   * Maximum number of polls of video tasks by one key within any second of the clock. Rejected ones count; those hit by `fault` do
   * not. The vendor rejects from the 21st on.
   */
  readonly mostTaskQueriesPerSecond: number
  /**
   * Makes the next matching call fail. The oldest matching fault is used first, one per call.
   * @throws TypeError for an unknown kind.
   */
  fault(fault: QueuedFault): void
  /**
   * Sets the answer to the next matching call, of any vendor, in its own format. The oldest matching reply is used first, one per
   * call; other calls are echoed. The request is checked before, and faults of delivery apply.
   * @throws TypeError for an invalid reply, with the reason.
   * @example
   * sandbox.reply({ when: { model: 'gpt-6-sol' }, toolCalls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] })
   */
  reply(reply: ScriptedReply): void
  /** Clears replies, faults, received calls, disconnects and counts. Running calls, video tasks and batches continue, as at a vendor. */
  reset(): void
}

/**
 * Creates offline stand-ins for OpenAI, Anthropic, Gemini, DashScope, Voyage, Cohere, chat and Responses of Azure OpenAI, Vertex AI
 * with Google's token endpoint at `/token`, Amazon Bedrock at `/bedrock`, and the servers of `signalbox/presets` at
 * `/presets/ID/v1`. They use the vendors' real wire formats, reject the same requests, answer deterministically, and fail on
 * request (see `Fault`).
 *
 * The model echoes: it answers `You said: …`, calls the functions that the text names (`call get_weather`), quotes their results,
 * fills JSON schemas, and thinks on request. Prompt tokens are a quarter of the prompt's bytes, rounded up; each word of the answer
 * is one token. The word `cached` in a prompt turns half of it into a cache read, `cache-write` a quarter of it into a cache write.
 * Videos and batches become ready by the clock; marks such as `[[video:fail]]` and `[[batch:expired]]` steer them.
 *
 * @example
 * const sandbox = sandboxVendors()
 * const { origin } = await sandbox.listen()
 * await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers: { authorization: 'Bearer any' }, body })
 */
export function sandboxVendors(options: SandboxOptions = {}): Sandbox {
  checkMembers(options, SANDBOX_OPTIONS, 'sandboxVendors')
  const { clock = systemClock, eventDelayMs = 0, maxRequests = 1000 } = options
  const { videoPendingMs: pendingMs = 1000, videoRunningMs: runningMs = 2000 } = options
  const videos = dashscopeVideos({ pendingMs, runningMs })
  const faults = faultQueue()
  const replies = replyQueue()
  const batchTimes = { pendingMs: options.batchPendingMs ?? 100, runningMs: options.batchRunningMs ?? 200 }
  const runInBatch: BatchRun = (batchId, incoming) => {
    const { call, status, body } = batchedAnswer(batchId, incoming, sources)
    keep(call)
    return { status, body }
  }
  const batches = [openaiBatches, dashscopeBatches, anthropicBatches, geminiBatches]
  const stateful = [
    anthropicMessages(),
    vertexClaude(),
    bedrockMessages(),
    ...batches.flatMap((operationsOf) => operationsOf(runInBatch, batchTimes)),
  ]
  const operations = [...videos.operations, ...stateful, ...SANDBOX_OPERATIONS]
  const sources = { operations, faults, replies, eventDelayMs, now: () => clock.now() }
  const requests: SandboxCall[] = []
  const arrivals = awaitableQueue<SandboxCall>()
  const departures = awaitableQueue<number>()
  const webhooks = awaitableQueue<SandboxCall>()
  const inProgress = new Set<VendorConnection>()
  let aborted = 0
  let server: SocketServer | undefined

  const keep = (call: SandboxCall): void => {
    requests.push(call)
    if (requests.length > maxRequests) requests.shift()
    arrivals.push(call)
  }
  const receive = (incoming: IncomingCall, connection: VendorConnection): void => {
    const { call, steps } = answeredCall(incoming, sources)
    keep(call)
    for (const earlier of inProgress) if (earlier.closed) inProgress.delete(earlier)
    inProgress.add(connection)
    const stop = playSteps(steps, connection, clock)
    connection.onDisconnect(() => {
      stop()
      aborted++
      departures.push(Date.now())
    })
    if (isWebhook(call)) webhooks.push(call)
  }
  const inProcess = memoryTransport(receive, clock)

  return {
    async listen(port = 0) {
      if (server !== undefined) throw new Error(`the stand-ins listen already, at ${server.origin}`)
      server = await socketServer(port, receive)
      return { origin: server.origin, port: server.port }
    },
    async close() {
      const closing = server
      server = undefined
      inProcess.resetAll()
      await closing?.close()
    },
    transport: () => inProcess,
    requests,
    nextRequest: () => arrivals.next(),
    get webhooks() {
      return requests.filter(isWebhook)
    },
    nextWebhook: () => webhooks.next(),
    get openConnections() {
      return inProcess.open + (server?.sockets.size ?? 0)
    },
    get openCalls() {
      let count = 0
      for (const connection of inProgress) if (!connection.closed) count++
      return count
    },
    get aborted() {
      return aborted
    },
    nextAbort: () => departures.next(),
    get mostTaskQueriesPerSecond() {
      return videos.mostQueriesPerSecond
    },
    fault: (fault) => faults.add(fault),
    reply: (reply) => replies.add(reply),
    reset() {
      faults.clear()
      replies.clear()
      requests.length = 0
      arrivals.clear()
      departures.clear()
      webhooks.clear()
      aborted = 0
      videos.resetCounts()
    },
  }
}

function isWebhook({ operation }: SandboxCall): boolean {
  return operation === WEBHOOK_RECEIVER.operation
}

// Without a limit, the list would grow in a test that never reads its items.
const MAX_KEPT = 10_000

/** Creates a queue with one reader per item. Items and readers may arrive in any order. */
function awaitableQueue<Item>() {
  const items: Item[] = []
  const askers: ((item: Item) => void)[] = []
  return {
    push(item: Item): void {
      const asker = askers.shift()
      if (asker === undefined) items.push(item)
      else asker(item)
      if (items.length > MAX_KEPT) items.shift()
    },
    /** Returns the oldest unread item, or waits for the next. */
    next(): Promise<Item> {
      if (items.length > 0) return Promise.resolve(items.shift() as Item)
      return new Promise((resolve) => askers.push(resolve))
    },
    clear(): void {
      items.length = 0
    },
  }
}
