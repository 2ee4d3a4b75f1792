import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { assertPlainJson, isJsonObject, isSparse, parseVendorJson } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { ExtraContent } from '../chat/chat-request.ts'
import { listOf } from '../schema.ts'
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

/** Tools of a request: listed tools and tools that its turns define. */
type Tools = readonly Readonly<Record<string, unknown>>[]

/** The members of a request in which tools are defined. */
interface ToolsOfRequest {
  readonly tools?: unknown
  readonly messages?: unknown
}

const NO_TOOLS: Tools = []

/**
 * Returns all tools that a request defines: those of `tools`, then those of its turns (Anthropic SDK,
 * `BetaToolChangeToolDefinitionParam`), which may be of any kind. A turn defines them by an instruction, or by a
 * summary of turns that did (`BetaCompactionBlockParam`).
 */
export function requestTools({ tools, messages }: ToolsOfRequest): Tools {
  const listed = Array.isArray(tools) ? (tools as Tools) : NO_TOOLS
  const added = addedTools(messages)
  return added === undefined ? listed : [...listed, ...added.map(({ tool }) => tool)]
}

/** Returns a function from an index in {@link requestTools} to the path of the tool. Reads the turns once, for all tools. */
export function toolPaths({ tools, messages }: ToolsOfRequest): (place: number) => string {
  const listed = Array.isArray(tools) ? tools.length : 0
  let added: readonly AddedTool[] | undefined
  return (place) => {
    if (place < listed) return `tools[${place}]`
    added ??= addedTools(messages)
    return added?.[place - listed]?.path ?? 'tools'
  }
}

/** Returns the definition in a block that adds a tool, or `undefined` if the tool is defined elsewhere. */
export function addedTool({
  type,
  tool,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (type !== 'tool_addition' || !isJsonObject(tool) || tool['type'] !== 'tool_definition') return undefined
  const { definition } = tool
  return isJsonObject(definition) ? definition : undefined
}

/** Whether a named tool is in effect from this turn on, or no longer. */
export interface ToolChange {
  readonly type: 'tool_addition' | 'tool_removal'
  readonly name: string
  /** Whether the tool is defined elsewhere. */
  readonly isReference: boolean
}

/** Returns all changes in order, except whole MCP servers, which only the dialect's own vendor calls. */
export function toolChanges(messages: MessagesRequest['messages']): readonly ToolChange[] {
  return messages.flatMap(({ content }) => (Array.isArray(content) ? content.flatMap(changesIn) : []))
}

function changesIn(block: unknown): readonly ToolChange[] {
  if (!isJsonObject(block)) return []
  const { type, tool_changes: changes } = block
  if (type === 'compaction') return Array.isArray(changes) ? changes.flatMap(changesIn) : []
  const change = toolChange(block)
  return change === undefined ? [] : [change]
}

/** Returns the change that a block makes, if any. */
export function toolChange(block: Readonly<Record<string, unknown>>): ToolChange | undefined {
  const { type, tool } = block
  if ((type !== 'tool_addition' && type !== 'tool_removal') || !isJsonObject(tool)) return undefined
  const isReference = tool['type'] === 'tool_reference'
  const name = isReference ? tool['name'] : addedTool(block)?.['name']
  return typeof name === 'string' ? { type, name, isReference } : undefined
}

interface AddedTool {
  readonly tool: Readonly<Record<string, unknown>>
  readonly path: string
}

function addedTools(messages: unknown): readonly AddedTool[] | undefined {
  if (!Array.isArray(messages)) return undefined
  let added: AddedTool[] | undefined
  for (let index = 0; index < messages.length; index++) {
    const { content } = messages[index] as { readonly content?: unknown }
    if (!Array.isArray(content)) continue
    for (let place = 0; place < content.length; place++) {
      const block = content[place] as ContentBlock
      if (block.type !== 'tool_addition' && block.type !== 'compaction') continue
      added ??= []
      addFrom(block, `messages[${index}].content[${place}]`, added)
    }
  }
  return added
}

function addFrom(block: Readonly<Record<string, unknown>>, path: string, added: AddedTool[]): void {
  const { type, tool_changes: changes } = block
  const tool = addedTool(block)
  if (tool !== undefined) added.push({ tool, path: `${path}.tool.definition` })
  if (type !== 'compaction' || !Array.isArray(changes)) return
  for (const [place, change] of changes.entries())
    if (isJsonObject(change) && change['type'] === 'tool_addition')
      addFrom(change, `${path}.tool_changes[${place}]`, added)
}

/** Prefix of every signature that the gateway created. */
export const CARRIED_MARK = 'signalbox:'

/**
 * Returns the signature of a thinking block that the gateway created. Clients of the dialect return such blocks unchanged
 * (Anthropic, "Extended thinking", tool use), so they carry the state that another vendor requires with the following tool call.
 * Without state, it is a mark that distinguishes the block from one signed by the dialect's own vendor.
 */
export function carriedSignature(state?: ExtraContent): string {
  return state === undefined ? CARRIED_MARK : CARRIED_MARK + Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** Whether the gateway created the signature. No vendor can read such a signature. */
export function isCarriedSignature(signature: unknown): signature is string {
  return typeof signature === 'string' && signature.startsWith(CARRIED_MARK)
}

/**
 * Returns the state in a signature, or `undefined` if it has none or is not the gateway's.
 * @throws GatewayError `json_too_deep` or `invalid_request` for state that the gateway did not write.
 */
export function readCarriedState(signature: unknown): ExtraContent | undefined {
  if (!isCarriedSignature(signature)) return undefined
  const text = Buffer.from(signature.slice(CARRIED_MARK.length), 'base64url').toString('utf8')
  const state = isSparse(text) ? parseVendorJson(text) : undefined
  if (!isJsonObject(state)) return undefined
  assertPlainJson(state)
  return state
}
