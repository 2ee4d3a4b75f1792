import { type Clock, systemClock } from '../../core/clock.ts'
import { checkMembers, memberNames } from '../../core/known-members.ts'
import type { Transport } from '../../transport/transport.ts'
import { presets } from '../../vendors/presets/presets.ts'
import {
  BEDROCK_CHAT,
  BEDROCK_CONVERSE,
  BEDROCK_COUNT_TOKENS,
  BEDROCK_EMBEDDINGS,
  bedrockMessages,
} from './amazon-bedrock/bedrock-operations.ts'
import { anthropicBatches } from './anthropic/anthropic-batches.ts'
import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from './anthropic/anthropic-messages.ts'
import { ANTHROPIC_ERRORS } from './anthropic/anthropic-request.ts'
import { AZURE_OPENAI_CHAT } from './azure/azure-openai.ts'
import type { BatchRun } from './batches/vendor-batches.ts'
import { COHERE_RERANK } from './cohere/cohere-rerank.ts'
import { DASHSCOPE_CHAT, DASHSCOPE_EMBEDDINGS, dashscopeBatches } from './dashscope/dashscope-compatible.ts'
import { DASHSCOPE_ERRORS } from './dashscope/dashscope-errors.ts'
import { DASHSCOPE_IMAGES, DASHSCOPE_SPEECH } from './dashscope/dashscope-multimodal.ts'
import { DASHSCOPE_NATIVE_RERANK, DASHSCOPE_RERANK, DASHSCOPE_TRANSCRIPTIONS } from './dashscope/dashscope-rerank.ts'
import { dashscopeVideos } from './dashscope/dashscope-videos.ts'
import { faultQueue, type QueuedFault } from './fault.ts'
import { PICTURE_FILES, SOUND_FILES, VIDEO_FILES } from './files/stored-files.ts'
import { geminiBatches } from './gemini/gemini-batches.ts'
import { GEMINI_EMBEDDINGS, GEMINI_TRANSCRIPTIONS } from './gemini/gemini-embeddings.ts'
import { GEMINI_ERRORS } from './gemini/gemini-errors.ts'
import { GEMINI_COUNT_TOKENS, GEMINI_GENERATE } from './gemini/gemini-generate.ts'
import { GEMINI_INTERACTIONS } from './gemini/gemini-interactions.ts'
import { OPENAI_SPEECH, OPENAI_TRANSCRIPTIONS, PRESET_TRANSCRIPTIONS } from './openai/openai-audio.ts'
import { OPENAI_CHAT } from './openai/openai-chat.ts'
import { OPENAI_EMBEDDINGS, OPENAI_MODERATIONS, openaiBatches, PRESET_MODERATIONS } from './openai/openai-embeddings.ts'
import { OPENAI_IMAGE_EDITS, OPENAI_IMAGES } from './openai/openai-images.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS } from './openai/openai-models.ts'
import {
  AZURE_OPENAI_RESPONSES,
  OPENAI_INPUT_TOKENS,
  OPENAI_RESPONSES,
  PRESET_RESPONSES,
} from './openai/openai-responses.ts'
import { PRESET_CHAT, PRESET_COMPLETIONS, PRESET_RERANK } from './presets/preset-chat.ts'
import {
  checkApiKey,
  type IncomingCall,
  jsonReply,
  type SandboxCall,
  type SandboxOperation,
  type VendorErrors,
} from './sandbox-operation.ts'
import { playSteps, replyQueue, type ScriptedReply, type VendorConnection } from './scripted-reply.ts'
import { answeredCall, batchedAnswer, memoryTransport, type SocketServer, socketServer } from './transports.ts'
import {
  VERTEX_CLAUDE_COUNT,
  VERTEX_COUNT_TOKENS,
  VERTEX_EMBED_CONTENT,
  VERTEX_GENERATE,
  VERTEX_OPEN_CHAT,
  VERTEX_PREDICT,
  VERTEX_TRANSCRIPTIONS,
  vertexClaude,
} from './vertex/vertex.ts'
import { GOOGLE_TOKENS } from './vertex/vertex-call.ts'
import { VOYAGE_EMBEDDINGS, VOYAGE_RERANK } from './voyage/voyage.ts'

/** A receiver of the gateway's own webhooks: `POST` to any path below `/webhooks`. */
const WEBHOOK_RECEIVER: SandboxOperation = {
  vendor: 'receiver',
  operation: 'webhook',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^\/webhooks(?:\/|$)/.test(path),
  promptText: () => '',
  answer: () => jsonReply(200, [], {}),
}

const CREATED = 1_767_225_600

/** A list of models in the form of one vendor. */
interface ModelList {
  readonly vendor: string
  readonly errors: VendorErrors
  matches(path: string, headers: Readonly<Record<string, string>>): boolean
  readonly headers?: readonly string[]
  /** Whether a path needs a key. Default true. */
  needsKey?(path: string): boolean
  body(): object
}

function openaiList(ids: readonly string[]): object {
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: CREATED, owned_by: 'sandbox' })) }
}

/** Returns the id of a preset in a path, or an empty string. */
function presetOf(path: string): string {
  return /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/models$/.exec(path)?.[1] ?? ''
}

const LISTS: readonly ModelList[] = [
  {
    vendor: 'anthropic',
    errors: ANTHROPIC_ERRORS,
    matches: (path, headers) => path === '/v1/models' && headers['anthropic-version'] !== undefined,
    body: () => ({
      data: [
        {
          type: 'model',
          id: 'claude-sonnet-5-5',
          display_name: 'Claude Sonnet 5.5',
          created_at: '2026-01-01T00:00:00Z',
        },
      ],
      has_more: false,
      first_id: 'claude-sonnet-5-5',
      last_id: 'claude-sonnet-5-5',
    }),
  },
  {
    vendor: 'openai',
    errors: OPENAI_ERRORS,
    matches: (path) => path === '/v1/models',
    headers: OPENAI_HEADERS,
    body: () => openaiList(['gpt-6-sol', 'gpt-6-luna']),
  },
  {
    vendor: 'gemini',
    errors: GEMINI_ERRORS,
    matches: (path) => path === '/v1beta/models',
    body: () => ({ models: [{ name: 'models/gemini-3.8-flash', supportedGenerationMethods: ['generateContent'] }] }),
  },
  {
    vendor: 'dashscope',
    errors: DASHSCOPE_ERRORS,
    matches: (path) => path === '/compatible-mode/v1/models',
    body: () => openaiList(['qwen-plus']),
  },
  {
    vendor: 'azure',
    errors: OPENAI_ERRORS,
    matches: (path) => path === '/openai/v1/models',
    body: () => openaiList(['gpt-6-sol']),
  },
  {
    vendor: 'presets',
    errors: OPENAI_ERRORS,
    matches: (path) => Object.hasOwn(presets, presetOf(path)),
    needsKey: (path) => presets[presetOf(path) as keyof typeof presets].needsKey,
    body: () => openaiList(['small', 'large']),
  },
]

/** `GET …/models` of the vendors that list their models. Any key is accepted, and required if the vendor requires one. */
const MODEL_LISTS: readonly SandboxOperation[] = LISTS.map(
  ({ vendor, errors, matches, needsKey, headers = [], body }) => ({
    vendor,
    operation: 'models',
    errors,
    needsJson: false,
    matches: (call) => call.method === 'GET' && matches(call.path, call.headers),
    promptText: () => '',
    answer(call) {
      if (needsKey?.(call.path) !== false) checkApiKey(call, errors)
      return jsonReply(200, headers, body())
    },
  }),
)

/** The operations of the stand-ins. The first match answers a call, so Voyage precedes OpenAI, and transcription chat. */
export const SANDBOX_OPERATIONS: readonly SandboxOperation[] = [
  OPENAI_TRANSCRIPTIONS,
  PRESET_TRANSCRIPTIONS,
  GEMINI_TRANSCRIPTIONS,
  VERTEX_TRANSCRIPTIONS,
  DASHSCOPE_TRANSCRIPTIONS,
  OPENAI_CHAT,
  PRESET_CHAT,
  PRESET_COMPLETIONS,
  AZURE_OPENAI_CHAT,
  BEDROCK_CHAT,
  BEDROCK_CONVERSE,
  BEDROCK_EMBEDDINGS,
  BEDROCK_COUNT_TOKENS,
  OPENAI_RESPONSES,
  OPENAI_INPUT_TOKENS,
  AZURE_OPENAI_RESPONSES,
  PRESET_RESPONSES,
  PRESET_RERANK,
  VOYAGE_RERANK,
  COHERE_RERANK,
  DASHSCOPE_RERANK,
  DASHSCOPE_NATIVE_RERANK,
  VOYAGE_EMBEDDINGS,
  OPENAI_EMBEDDINGS,
  ANTHROPIC_COUNT_TOKENS,
  GEMINI_GENERATE,
  GEMINI_EMBEDDINGS,
  GEMINI_COUNT_TOKENS,
  GEMINI_INTERACTIONS,
  VERTEX_GENERATE,
  VERTEX_COUNT_TOKENS,
  VERTEX_EMBED_CONTENT,
  VERTEX_PREDICT,
  VERTEX_CLAUDE_COUNT,
  VERTEX_OPEN_CHAT,
  GOOGLE_TOKENS,
  DASHSCOPE_CHAT,
  DASHSCOPE_EMBEDDINGS,
  DASHSCOPE_SPEECH,
  DASHSCOPE_IMAGES,
  OPENAI_IMAGES,
  OPENAI_IMAGE_EDITS,
  OPENAI_SPEECH,
  OPENAI_MODERATIONS,
  PRESET_MODERATIONS,
  ...MODEL_LISTS,
  PICTURE_FILES,
  SOUND_FILES,
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
  const operations = [...videos.operations, VIDEO_FILES, ...stateful, ...SANDBOX_OPERATIONS]
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

/** A queue with one reader per item. Items and readers may arrive in any order. */
export interface AwaitableQueue<Item> {
  push(item: Item): void
  /** Returns the oldest unread item, or waits for the next. */
  next(): Promise<Item>
  /** Drops unread items. */
  clear(): void
}

/** Creates an empty queue. */
export function awaitableQueue<Item>(): AwaitableQueue<Item> {
  const items: Item[] = []
  const askers: ((item: Item) => void)[] = []
  return {
    push(item) {
      const asker = askers.shift()
      if (asker !== undefined) return asker(item)
      items.push(item)
      if (items.length > MAX_KEPT) items.shift()
    },
    next() {
      if (items.length > 0) return Promise.resolve(items.shift() as Item)
      return new Promise((resolve) => askers.push(resolve))
    },
    clear() {
      items.length = 0
    },
  }
}
