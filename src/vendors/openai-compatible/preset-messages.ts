import { createHash } from 'node:crypto'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { hasExtensions, withoutExtensions } from '../shared/chat-fields.ts'
import type { FieldMapping } from '../shared/field-rules.ts'
import type { PresetDialect, PresetReasoning } from '../shared/preset.ts'

/** Rewrites one message. Returns the same object if nothing changes. */
type Step = (message: ChatMessage, isLast: boolean) => ChatMessage

/** Adapts the history to a server: reasoning, roles, ids of tool calls and members of messages follow its preset. */
export function messagesMapping(dialect: PresetDialect): FieldMapping<ChatRequest> {
  const members = dialect.messageMembers === undefined ? undefined : new Set(dialect.messageMembers)
  const steps: Step[] = [reasoningStep(dialect.reasoning ?? { back: 'never' })]
  if (dialect.takesDeveloperRole !== true) steps.push(withoutDeveloper)
  if (dialect.toolIdLength !== undefined) steps.push(toolIdStep(dialect.toolIdLength))
  if (dialect.prefillMember !== undefined) steps.push(prefillStep(dialect.prefillMember))
  if (members !== undefined) steps.push((message) => withMembers(message, members))
  const rewrite: Step = (message, isLast) => {
    let current = message
    for (let step = 0; step < steps.length; step++) current = steps[step]!(current, isLast)
    return current
  }
  const answers = dialect.answersTools === true
  return {
    // Runs for every request, so it allocates nothing if nothing changes.
    needed: (_value, { messages }) => {
      for (let index = 0; index < messages.length; index++) {
        const message = messages[index]!
        if (answers && followsTool(messages, index)) return true
        if (rewrite(message, index === messages.length - 1) !== message) return true
      }
      return false
    },
    apply: (body, value) => {
      const messages = value as readonly ChatMessage[]
      body['messages'] = messages.flatMap((message, index) => {
        const written = rewrite(message, index === messages.length - 1)
        return answers && followsTool(messages, index) ? [ANSWER_TO_TOOL, written] : [written]
      })
    },
    ...(members === undefined ? {} : { losses: (value) => lostMembers(value as readonly ChatMessage[], members) }),
  }
}

const ANSWER_TO_TOOL: ChatMessage = { role: 'assistant', content: 'OK.' }

function followsTool(messages: readonly ChatMessage[], index: number): boolean {
  return messages[index]!.role === 'user' && messages[index - 1]?.role === 'tool'
}

function reasoningStep({ back, as = 'reasoning_content', evenEmpty = false }: PresetReasoning): Step {
  return (message) => {
    const known = reasoningOf(message)
    const isDue =
      message.role === 'assistant' &&
      (back === 'always' || (back === 'tool-calls' && (message.tool_calls?.length ?? 0) > 0))
    const wanted = isDue ? (known ?? (evenEmpty ? '' : undefined)) : undefined
    if (wanted === undefined && !carriesReasoning(message)) return message
    if (as === 'reasoning' && wanted !== undefined && reasoningIs(message, wanted)) return message
    const { reasoning: _reasoning, ...bare }: ReasonedMessage = withoutExtensions(message)
    return wanted === undefined ? bare : { ...bare, [as]: wanted }
  }
}

type ReasonedMessage = ChatMessage & { readonly reasoning?: unknown }

/** Whether a message carries exactly this reasoning in the form that the server accepts. */
function reasoningIs(message: ReasonedMessage, wanted: string): boolean {
  return message.reasoning === wanted && !hasExtensions(message)
}

function carriesReasoning(message: ReasonedMessage): boolean {
  return message.reasoning !== undefined || hasExtensions(message)
}

/** Clients repeat the reasoning of an answer under its original name. */
function reasoningOf(message: ReasonedMessage): string | undefined {
  const text = message.reasoning_content ?? message.reasoning
  return typeof text === 'string' ? text : undefined
}

function withoutDeveloper(message: ChatMessage): ChatMessage {
  return message.role === 'developer' ? { ...message, role: 'system' } : message
}

/** Replaces an id by a hash, so that both of its places match without stored state. */
function toolIdStep(length: number): Step {
  const fits = new RegExp(`^[a-zA-Z0-9]{${length}}$`)
  const shortened = (id: string): string => {
    if (fits.test(id)) return id
    const digest = createHash('sha256').update(id).digest('hex')
    return BigInt(`0x${digest}`).toString(36).padStart(length, '0').slice(-length)
  }
  return (message) => {
    const { tool_calls: calls, tool_call_id: answered } = message
    if (answered !== undefined && !fits.test(answered)) return { ...message, tool_call_id: shortened(answered) }
    if (!Array.isArray(calls) || calls.every(({ id }) => fits.test(id))) return message
    return { ...message, tool_calls: calls.map((call) => ({ ...call, id: shortened(call.id) })) }
  }
}

function prefillStep(member: string): Step {
  return (message, isLast) => (isLast && message.role === 'assistant' ? { ...message, [member]: true } : message)
}

function withMembers(message: ChatMessage, members: ReadonlySet<string>): ChatMessage {
  for (const name in message) if (!members.has(name)) return onlyMembers(message, members)
  return message
}

function onlyMembers(message: ChatMessage, members: ReadonlySet<string>): ChatMessage {
  return Object.fromEntries(Object.entries(message).filter(([name]) => members.has(name))) as unknown as ChatMessage
}

/** Members that the gateway itself adds to answers. The caller loses nothing if they are dropped. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'thinking_blocks', 'extra_content'])

function lostMembers(messages: readonly ChatMessage[], members: ReadonlySet<string>): readonly string[] {
  const lost = messages.flatMap((message) =>
    Object.entries(message)
      .filter(([name, value]) => !members.has(name) && !OWN_MEMBERS.has(name) && value !== null && value !== undefined)
      .map(([name]) => `messages.${name}`),
  )
  return [...new Set(lost)]
}
