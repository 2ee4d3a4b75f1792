import { GatewayError } from '../../core/errors.ts'
import { assertPlainJson, isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { ChatMessage, ChatToolCall, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { mixedContent, textBlocks, textContent } from './chat-content.ts'
import type { AssistantBlock, UserBlock } from './messages-blocks.ts'
import type { MessagesTurn } from './messages-request.ts'
import { type ToolCallIds, toolCallIds } from './tool-call-ids.ts'
import { CallAnswers, type OpenCall, orphanResult } from './tool-results.ts'

/** A chat in Anthropic's terms: system text apart, and turns in which consecutive messages of one side are joined. */
export interface Conversation {
  readonly system: string[]
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

/** What {@link conversationFrom} goes by. */
export interface ConversationOptions {
  /** May system messages stand between turns? Otherwise all of them go to the front. */
  readonly systemInPlace: boolean
  readonly report: (field: string) => void
}

/** Members of a message that have no equivalent (Anthropic, "OpenAI SDK compatibility"). */
const LOST_FIELDS = ['name', 'audio', 'function_call'] as const

/**
 * Converts the messages of a chat. Tool results stand first in the user turn that follows their calls. What the API refuses is
 * patched, and nothing is lost: a call without a result gets one that says so, a result without its call becomes text.
 * A system message between two turns stands behind the user turn it came with, the one place that the API allows; without such
 * a turn it goes to the front.
 * @throws GatewayError `invalid_request` or `unsupported_parameter`, naming the message or part.
 */
export function conversationFrom(messages: readonly ChatMessage[], options: ConversationOptions): Conversation {
  const open: OpenTurn[] = []
  const system: string[] = []
  const ids = toolCallIds()
  messages.forEach((message, index) => {
    const path = `messages[${index}]`
    for (const field of LOST_FIELDS) if (Reflect.get(message, field)) options.report(`messages.${field}`)
    if (message.role === 'system' || message.role === 'developer') {
      const text = joinedText(textContent(message.content, `${path}.content`))
      const isBetweenTurns = options.systemInPlace && open.length > 0
      if (text !== '') (isBetweenTurns ? userTurn(open).system : system).push(text)
    } else if (message.role === 'user') {
      const { rest } = userTurn(open)
      for (const block of mixedContent(message.content, `${path}.content`, options.report)) rest.push(block)
    } else if (message.role === 'tool') {
      addToolResult(userTurn(open), message, path, options.report)
    } else {
      addAssistantMessage(open, message, { path, ids, report: options.report })
    }
  })
  return closeTurns(open, system)
}

function userTurn(open: OpenTurn[]): OpenUserTurn {
  const last = open.at(-1)
  if (last?.role === 'user') return last
  const turn: OpenUserTurn = { role: 'user', answers: new CallAnswers(last?.calls ?? []), rest: [], system: [] }
  open.push(turn)
  return turn
}

function addToolResult(turn: OpenUserTurn, message: ChatMessage, path: string, report: (field: string) => void): void {
  const callId = message.tool_call_id ?? ''
  const content = mixedContent(message.content, `${path}.content`, report)
  if (!turn.answers.add(callId, content)) turn.rest.push(...orphanResult(callId, content))
}

function addAssistantMessage(
  open: OpenTurn[],
  message: ChatMessage,
  context: { path: string; ids: ToolCallIds; report: (field: string) => void },
): void {
  const { path, ids, report } = context
  const thinking = Array.isArray(message.thinking_blocks) ? message.thinking_blocks.filter(isSigned) : []
  if (thinking.length === 0 && message.reasoning_content) report('messages.reasoning_content')
  const blocks: AssistantBlock[] = [
    ...thinking,
    ...textContent(message.content, `${path}.content`),
    ...textBlocks(message.refusal),
  ]
  const calls: OpenCall[] = []
  message.tool_calls?.forEach((call, index) => {
    const toolUseId = ids.assign(call.id)
    calls.push({ callId: call.id, toolUseId })
    const input = toolInput(call, `${path}.tool_calls[${index}]`)
    blocks.push({ type: 'tool_use', id: toolUseId, name: call.function.name, input })
  })
  if (blocks.length === 0) return
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  if (last?.role === 'assistant' && last.calls.length === 0) {
    for (const block of blocks) last.blocks.push(block)
    last.calls.push(...calls)
  } else {
    open.push({ role: 'assistant', blocks, calls })
  }
}

function toolInput(call: ChatToolCall, path: string): Record<string, unknown> {
  // Validation lets calls of other types through, for vendors that have them.
  if (call.function === undefined) {
    throw new GatewayError('unsupported_parameter', {
      message: 'The model supports tool calls of type "function" only.',
      param: path,
    })
  }
  const text = call.function.arguments
  const input = text.trim() === '' ? {} : parseVendorJson(text)
  if (!isJsonObject(input)) {
    throw new GatewayError('invalid_request', {
      message: 'The arguments of a tool call must be the JSON text of an object.',
      param: `${path}.function.arguments`,
    })
  }
  assertPlainJson(input)
  return input
}

// A block without its signature is refused, and one of another vendor has none.
function isSigned(block: unknown): block is ThinkingBlock {
  if (!isJsonObject(block)) return false
  if (block['type'] === 'redacted_thinking') return typeof block['data'] === 'string'
  const { type, thinking, signature } = block
  return type === 'thinking' && typeof thinking === 'string' && typeof signature === 'string' && signature !== ''
}

function closeTurns(open: OpenTurn[], hoisted: string[]): Conversation {
  const turns: MessagesTurn[] = []
  const system = [...hoisted]
  // An answer to the calls of the last turn is due even when the caller sent none.
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  for (const turn of open) {
    if (turn.role === 'assistant') {
      turns.push({ role: 'assistant', content: turn.blocks })
      continue
    }
    const content = [...turn.answers.blocks(), ...turn.rest]
    if (content.length === 0) {
      for (const text of turn.system) system.push(text)
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

function joinedText(blocks: readonly { text: string }[]): string {
  return blocks.map((block) => block.text).join('\n')
}
