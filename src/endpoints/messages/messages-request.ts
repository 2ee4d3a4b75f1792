import * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../list-of.ts'
import { LARGEST_TOKEN_BOUND } from '../token-estimate.ts'

/**
 * The body of `POST /v1/messages` (Anthropic, Messages reference), limited to fields that the gateway reads. Other fields are
 * passed to vendors that accept the dialect.
 */

/** A block of content with its type: `text`, `image`, `tool_use`, … */
export interface ContentBlock {
  type: string
  [field: string]: unknown
}

/** One turn, or an instruction between two turns (role `system`). */
export interface MessageParam {
  role: string
  /** Absent only in an instruction that changes only the effort. */
  content?: string | ContentBlock[]
  [field: string]: unknown
}

/** A request for a message, or for the count of its tokens. */
export interface MessagesRequest {
  model: string
  /** At least one, unless a thread is continued. */
  messages: MessageParam[]
  /** Maximum generated tokens, including reasoning. Absent in token counts. */
  max_tokens?: number
  system?: string | ContentBlock[] | null
  stream?: boolean | null
  temperature?: number | null
  top_p?: number | null
  stop_sequences?: string[] | null
  tools?: Record<string, unknown>[] | null
  tool_choice?: { type: string; [field: string]: unknown } | null
  thinking?: { type: string; [field: string]: unknown } | null
  output_config?: Record<string, unknown> | null
  metadata?: Record<string, unknown> | null
  /** A conversation stored by the vendor. `messages` are its newest turns. */
  thread?: { type: string; [field: string]: unknown } | null
  [field: string]: unknown
}

const blocks = onDemand(() => listOf(z.looseObject({ type: z.string() })))

/** An instruction may change the effort alone (Anthropic SDK, `BetaSystemMessageParam`). */
const hasContent: z.core.CheckFn<Omit<MessageParam, 'content'> & { content?: unknown }> = ({ value, issues }) => {
  const { role, content, output_config: config } = value
  if (content !== undefined || (role === 'system' && isJsonObject(config))) return
  issues.push({ code: 'custom', path: ['content'], message: 'is required', input: content })
}

const message = onDemand(() =>
  z
    .looseObject({
      role: z.string().min(1),
      content: z.union([z.string(), blocks()]).optional(),
    })
    .check(hasContent),
)

/** Maximum number of stop sequences of a request. Each is compared with every text of the answer. */
const MAX_STOP_SEQUENCES = 1_024

const fields = onDemand(() => ({
  model: z.string().min(1),
  messages: listOf(message()),
  system: z.union([z.string(), blocks()]).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  stop_sequences: listOf(z.string(), MAX_STOP_SEQUENCES).nullish(),
  tools: listOf(z.looseObject({})).nullish(),
  tool_choice: z.looseObject({ type: z.string() }).nullish(),
  thinking: z.looseObject({ type: z.string() }).nullish(),
  output_config: z.looseObject({}).nullish(),
  metadata: z.looseObject({}).nullish(),
  thread: z.looseObject({ type: z.string() }).nullish(),
}))

/** A thread that stopped in mid-turn continues without a new message (Anthropic, "Message threads"). */
const hasTurn: z.core.CheckFn<{ messages: unknown[]; thread?: { type: string } | null | undefined }> = ({
  value,
  issues,
}) => {
  if (value.messages.length > 0 || value.thread?.type === 'continue') return
  issues.push({ code: 'custom', path: ['messages'], message: 'needs at least one message', input: value.messages })
}

/**
 * Rules of a request for a message (Anthropic, Messages reference). Only fields that the gateway reads are checked: the
 * dialect grows with every release of its clients, and the vendor checks the rest. `max_tokens` of 0 fills a cache and
 * generates nothing.
 */
export const messagesSchema = onDemand(() =>
  z.looseObject({ ...fields(), max_tokens: z.int().min(0).max(LARGEST_TOKEN_BOUND) }).check(hasTurn),
)

/** Rules of a request to count tokens: the same without a bound (Anthropic, "Token counting"). */
export const countTokensSchema = onDemand(() => z.looseObject(fields()).check(hasTurn))
