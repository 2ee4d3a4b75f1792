import { parseExactJson } from '../../core/exact-json.ts'
import { assertPlainJson, isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatToolCall, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { assertFittingJsonTexts } from '../../endpoints/chat/json-texts.ts'
import type { ModelAbilities } from './messages-abilities.ts'
import {
  type AssistantBlock,
  type CachePointBlock,
  type ContentAbilities,
  contentToWire,
  type TextBlock,
  type ToolResultBlock,
  type ToolResultContent,
  textBlocks,
  textContent,
  type UserBlock,
} from './messages-content.ts'
import { invalidParameter, unsupportedParameter } from './parameter-errors.ts'

/** One entry of `messages`. Only some models accept `system` entries, and never first. */
export type MessagesTurn =
  | { role: 'user'; content: UserBlock[] }
  | { role: 'assistant'; content: AssistantBlock[] }
  | { role: 'system'; content: string }

/** A chat in Anthropic's terms: separate system text, and turns that join consecutive messages of one side. */
interface Conversation {
  /** Contains cache points only if a caller has set some. */
  readonly system: (TextBlock | CachePointBlock)[]
  readonly turns: MessagesTurn[]
}

interface OpenAssistantTurn {
  readonly role: 'assistant'
  readonly blocks: AssistantBlock[]
  readonly calls: OpenCall[]
}

interface OpenUserTurn {
  readonly role: 'user'
  readonly answers: CallAnswers
  readonly rest: UserBlock[]
  readonly system: string[]
}

type OpenTurn = OpenAssistantTurn | OpenUserTurn

/** A tool call of an assistant turn, which the next user turn must answer. */
interface OpenCall {
  /** Id in the caller's conversation. */
  readonly callId: string
  /** Id in the request to the vendor. */
  readonly toolUseId: string
}

/** Abilities of a model that decide how a conversation is written. */
export type ConversationAbilities = Pick<ModelAbilities, 'systemInPlace' | 'prefill'> & ContentAbilities

/** Members of a message without an equivalent (Anthropic, "OpenAI SDK compatibility"). */
const LOST_FIELDS = ['name', 'audio', 'function_call'] as const

/** Characters that the API rejects in the id of a tool use. */
const FORBIDDEN_ID_CHARACTERS = /[^a-zA-Z0-9_-]/g

/**
 * Converts the messages of a chat. Tool results come first in the user turn after their calls. Conversations that the API would
 * reject are repaired without losing content: a call without a result gets a placeholder result, and a result without its call
 * becomes text. A system message between two turns moves after the adjacent user turn, the only place that the API allows; without
 * such a turn it moves to the start.
 * @throws GatewayError `invalid_request` or `unsupported_parameter`, naming the message or part, or `messages` if nothing
 *   remains to answer or the model does not continue an assistant turn.
 */
export function conversationToWire(
  messages: readonly ChatMessage[],
  abilities: ConversationAbilities,
  report: (field: string) => void,
): Conversation {
  assertFittingJsonTexts(messages, { readsAnswers: false })
  const open: OpenTurn[] = []
  const system: (TextBlock | CachePointBlock)[] = []
  const usedIds: UsedIds = new Map()
  messages.forEach((message, index) => {
    const path = `messages[${index}]`
    for (const field of LOST_FIELDS) if (Reflect.get(message, field)) report(`messages.${field}`)
    if (message.role === 'system' || message.role === 'developer') {
      const isBetweenTurns = abilities.systemInPlace && open.length > 0
      const blocks = textContent(message.content, `${path}.content`, abilities)
      if (isBetweenTurns) {
        for (const block of blocks) if (block.type === 'cache_point') report(block.field)
        const text = textOf(blocks)
        if (text !== '') userTurn(open).system.push(text)
      } else for (const block of blocks) system.push(block)
    } else if (message.role === 'user') {
      const { rest } = userTurn(open)
      for (const block of contentToWire(message.content, `${path}.content`, report, abilities)) rest.push(block)
    } else if (message.role === 'tool') {
      addToolResult(userTurn(open), message, path, { report, abilities })
    } else {
      addAssistantMessage(open, message, { path, usedIds, report, abilities })
    }
  })
  return answerable(closedTurns(open, system), abilities)
}

function userTurn(open: OpenTurn[]): OpenUserTurn {
  const last = open.at(-1)
  if (last?.role === 'user') return last
  const turn: OpenUserTurn = { role: 'user', answers: new CallAnswers(last?.calls ?? []), rest: [], system: [] }
  open.push(turn)
  return turn
}

function addToolResult(
  turn: OpenUserTurn,
  message: ChatMessage,
  path: string,
  { report, abilities }: { report: (field: string) => void; abilities: ConversationAbilities },
): void {
  const callId = message.tool_call_id ?? ''
  const content = contentToWire(message.content, `${path}.content`, report, abilities)
  if (turn.answers.add(callId, content)) return
  for (const block of orphanResult(callId, content)) turn.rest.push(block)
}

function addAssistantMessage(
  open: OpenTurn[],
  message: ChatMessage,
  context: {
    path: string
    usedIds: UsedIds
    report: (field: string) => void
    abilities: ConversationAbilities
  },
): void {
  const { path, usedIds, report, abilities } = context
  const thinking = Array.isArray(message.thinking_blocks) ? message.thinking_blocks.filter(isSigned) : []
  if (thinking.length === 0 && message.reasoning_content) report('messages.reasoning_content')
  const blocks: AssistantBlock[] = [
    ...thinking,
    ...textContent(message.content, `${path}.content`, abilities),
    ...textBlocks(message.refusal),
  ]
  const calls: OpenCall[] = []
  message.tool_calls?.forEach((call, index) => {
    const toolUseId = freshId(call.id, usedIds)
    calls.push({ callId: call.id, toolUseId })
    const input = toolInput(call, `${path}.tool_calls[${index}]`)
    blocks.push({ type: 'tool_use', id: toolUseId, name: call.function.name, input })
  })
  if (blocks.length === 0) return
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  if (last?.role === 'assistant' && last.calls.length === 0) {
    for (const block of blocks) last.blocks.push(block)
    for (const call of calls) last.calls.push(call)
  } else {
    open.push({ role: 'assistant', blocks, calls })
  }
}

function toolInput(call: ChatToolCall, path: string): Record<string, unknown> {
  // Validation passes calls of other types, for vendors that support them.
  if (call.function === undefined) {
    throw unsupportedParameter(path, 'The model supports tool calls of type "function" only.')
  }
  const text = call.function.arguments
  const input = text.trim() === '' ? {} : parseExactJson(text)
  if (!isJsonObject(input)) {
    const message = 'The arguments of a tool call must be the JSON text of an object.'
    throw invalidParameter(`${path}.function.arguments`, message)
  }
  assertPlainJson(input)
  return input
}

// A block without its signature is rejected, and blocks of other vendors have none.
function isSigned(block: unknown): block is ThinkingBlock {
  if (!isJsonObject(block)) return false
  if (block['type'] === 'redacted_thinking') return typeof block['data'] === 'string'
  const { type, thinking, signature } = block
  return type === 'thinking' && typeof thinking === 'string' && typeof signature === 'string' && signature !== ''
}

/** Ids used in a conversation, each with the number to try for the next call of the same id. */
export type UsedIds = Map<string, number>

/** Returns the id of a call in the request: the caller's own, unless it repeats or the API rejects it. */
export function freshId(callId: string, usedIds: UsedIds): string {
  const base = callId.replaceAll(FORBIDDEN_ID_CHARACTERS, '_') || 'call'
  let count = usedIds.get(base) ?? FIRST_REPETITION
  let id = base
  for (; usedIds.has(id); count++) id = `${base}_${count}`
  usedIds.set(base, count)
  if (id !== base) usedIds.set(id, FIRST_REPETITION)
  return id
}

const FIRST_REPETITION = 2

/** Returns the texts of blocks, separated by line breaks. */
export function textOf(blocks: readonly (TextBlock | CachePointBlock)[]): string {
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

function closedTurns(open: OpenTurn[], system: Conversation['system']): Conversation {
  const turns: MessagesTurn[] = []
  // The calls of the last turn need an answer even if the caller sent none.
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  for (const turn of open) {
    if (turn.role === 'assistant') {
      turns.push({ role: 'assistant', content: turn.blocks })
      continue
    }
    const content = [...turn.answers.blocks(), ...turn.rest]
    if (content.length === 0) {
      for (const text of turn.system) system.push({ type: 'text', text })
      continue
    }
    turns.push({ role: 'user', content })
    if (turn.system.length > 0) turns.push({ role: 'system', content: turn.system.join('\n') })
  }
  if (turns[0]?.role === 'assistant') {
    turns.unshift({ role: 'user', content: [{ type: 'text', text: '(The conversation begins with the assistant.)' }] })
  }
  return { system, turns }
}

/**
 * Makes a conversation answerable. System text alone becomes a user turn. A final assistant turn asks the model to continue it,
 * which only some models do; its trailing white space is then removed.
 */
function answerable(conversation: Conversation, abilities: ConversationAbilities): Conversation {
  const { system, turns } = conversation
  if (turns.length === 0) {
    const text = textOf(system)
    if (text === '') {
      throw invalidParameter('messages', 'messages hold no content that the model could answer.')
    }
    return { system: [], turns: [{ role: 'user', content: [{ type: 'text', text }] }] }
  }
  const last = turns.at(-1)
  if (last?.role !== 'assistant') return conversation
  if (!abilities.prefill) {
    const message = 'The model does not continue an assistant message: messages must end with a user or tool message.'
    throw unsupportedParameter('messages', message)
  }
  return { system, turns: [...turns.slice(0, -1), { role: 'assistant', content: trimEnd(last.content) }] }
}

function trimEnd(blocks: readonly AssistantBlock[]): AssistantBlock[] {
  const last = blocks.findLastIndex(({ type }) => type !== 'cache_point')
  return blocks.map((block, index) =>
    index === last && block.type === 'text' ? { ...block, text: block.text.trimEnd() } : block,
  )
}

/** Whether the conversation ends with an assistant turn that the model must continue. */
export function endsWithPrefill(turns: readonly MessagesTurn[]): boolean {
  return turns.at(-1)?.role === 'assistant'
}

/**
 * Whether the conversation is inside a tool loop whose assistant turn does not begin with a thinking block. The API then rejects a
 * thinking budget (Anthropic, "Extended thinking", tool use).
 */
export function loopLacksThinking(turns: readonly MessagesTurn[]): boolean {
  const assistant = turns.findLast((turn) => turn.role === 'assistant')
  if (assistant?.role !== 'assistant') return false
  const first = assistant.content[0]?.type
  const inLoop = assistant.content.some((block) => block.type === 'tool_use')
  return inLoop && first !== 'thinking' && first !== 'redacted_thinking'
}

/** The calls of one assistant turn with their results. */
class CallAnswers {
  readonly #calls: readonly OpenCall[]
  /** Calls by id, and how many of them have a result, counted from the first. */
  readonly #byId = new Map<string, { readonly calls: OpenCall[]; answered: number }>()
  readonly #results = new Map<OpenCall, ToolResultContent[]>()

  constructor(calls: readonly OpenCall[]) {
    this.#calls = calls
    for (const call of calls) {
      const same = this.#byId.get(call.callId)
      if (same === undefined) this.#byId.set(call.callId, { calls: [call], answered: 0 })
      else same.calls.push(call)
    }
  }

  /**
   * Adds the result of a call. Returns false if no such call is open. Another result for an answered call is added to that of the
   * last one, because the API accepts one result per call.
   */
  add(callId: string, content: readonly ToolResultContent[]): boolean {
    const same = this.#byId.get(callId)
    if (same === undefined) return false
    const open = same.calls[same.answered]
    if (open === undefined) {
      const results = this.#results.get(same.calls.at(-1)!)!
      for (const part of content) results.push(part)
    } else {
      this.#results.set(open, [...content])
      same.answered += 1
    }
    return true
  }

  /** Returns one result for each call, in the order of the calls. A call without a result gets a placeholder. */
  blocks(): ToolResultBlock[] {
    return this.#calls.map((call) => {
      const result = { type: 'tool_result', tool_use_id: call.toolUseId } as const
      const content = this.#results.get(call)
      if (content !== undefined) return content.length === 0 ? result : { ...result, content }
      return { ...result, content: [{ type: 'text', text: 'No result was given for this tool call.' }], is_error: true }
    })
  }
}

/** Returns a result without its call as ordinary content of the user turn, because the API rejects any other form. */
function orphanResult(callId: string, content: ToolResultContent[]): UserBlock[] {
  return [{ type: 'text', text: `Result of tool call ${callId === '' ? '(no id)' : callId}:` }, ...content]
}
