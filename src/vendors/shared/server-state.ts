import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatToolCall, ExtraContent } from '../../endpoints/chat/chat-request.ts'

/**
 * Members of an assistant's message with state that servers of the dialect need back unchanged: OpenRouter ("Preserving
 * reasoning"), LiteLLM ("Reasoning content"), GitHub Copilot.
 */
const MESSAGE_MEMBERS = ['reasoning_details', 'thinking_blocks', 'reasoning_opaque', 'reasoning_text'] as const
/** Member of messages and of calls that contains signatures among other things (LiteLLM, "Gemini 3"). */
const PROVIDER_FIELDS = 'provider_specific_fields'
const SIGNATURES = ['thought_signature', 'thought_signatures'] as const

type Members = Record<string, unknown>

/** Types of entries that are whole: two of them are never pieces of one. */
const WHOLE_TYPES: ReadonlySet<unknown> = new Set(['reasoning.encrypted', 'redacted_thinking'])

/** Returns the state of a message or delta, or `undefined` if it has none. */
export function messageState(message: Members): Members | undefined {
  const given = MESSAGE_MEMBERS.filter((name) => isState(message[name])).map((name) => [name, message[name]] as const)
  return withMembers([...given, ...signaturesIn(message)])
}

/** Returns the state of a tool call, or `undefined` if it has none. */
export function callState(call: Members): Members | undefined {
  return withMembers(signaturesIn(call))
}

function signaturesIn({ [PROVIDER_FIELDS]: fields }: Members): (readonly [string, unknown])[] {
  if (!isJsonObject(fields)) return []
  const signatures = withMembers(SIGNATURES.filter((name) => isState(fields[name])).map((name) => [name, fields[name]]))
  return signatures === undefined ? [] : [[PROVIDER_FIELDS, signatures]]
}

function withMembers(entries: readonly (readonly [string, unknown])[]): Members | undefined {
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

function isState(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value === 'string' && value !== ''
}

/** Returns the state of a message with that of another delta. */
export function joinedState(state: Members | undefined, piece: Members): Members {
  const joined = { ...state }
  for (const [name, value] of Object.entries(piece)) joined[name] = joinedValue(joined[name], value)
  return joined
}

function joinedValue(first: unknown, next: unknown): unknown {
  if (typeof first === 'string' && typeof next === 'string') return first + next
  if (!Array.isArray(first) || !Array.isArray(next)) return next
  const list: unknown[] = [...first]
  for (const entry of next) {
    const last = list.at(-1)
    if (isJsonObject(last) && isJsonObject(entry) && continues(last, entry))
      list[list.length - 1] = joinedEntry(last, entry)
    else list.push(entry)
  }
  return list
}

function continues(last: Members, entry: Members): boolean {
  const isOther = ['type', 'index'].some((name) => last[name] !== entry[name])
  return !isOther && !WHOLE_TYPES.has(entry['type']) && !last['signature']
}

function joinedEntry(last: Members, entry: Members): Members {
  const joined = { ...last }
  for (const [name, value] of Object.entries(entry)) {
    const isText = ['text', 'summary', 'thinking'].includes(name) && typeof joined[name] === 'string'
    if (isText && typeof value === 'string') joined[name] += value
    else if (value !== null && value !== undefined) joined[name] = value
  }
  return joined
}

/** Adds state to the state that a message or call carries. @param vendor Id of the vendor that needs it back. */
export function withServerState(
  extra: ExtraContent | undefined,
  vendor: string,
  state: { readonly message?: Members | undefined; readonly call?: Members | undefined },
): ExtraContent | undefined {
  const { message, call } = state
  if (message === undefined && call === undefined) return extra
  return { ...extra, server: { vendor, ...(message && { message }), ...(call && { call }) } }
}

/** Holds state while the rules of a server rewrite its message. Copies keep it, and JSON omits it. */
const STATE = Symbol('state')

interface Holder {
  [STATE]?: Members
}

/**
 * Removes the state of servers from messages and calls, and holds that of one vendor for {@link restoredState}.
 * @returns `undefined` if there is none.
 */
export function heldState(messages: readonly ChatMessage[], vendor: string): ChatMessage[] | undefined {
  if (!messages.some((message) => extrasOf(message).some((extra) => extra?.server !== undefined))) return undefined
  return messages.map((message) => {
    const own = extrasOf(message).flatMap((extra) => (extra?.server?.vendor === vendor ? [extra.server] : []))
    const [state] = own.flatMap(({ message: members }) => (isJsonObject(members) ? [messageState(members)] : []))
    const calls = message.tool_calls?.map((call) => heldIn(call, vendor))
    return { ...withoutServer(message), ...(calls && { tool_calls: calls }), ...(state && { [STATE]: state }) }
  })
}

function heldIn(call: ChatToolCall, vendor: string): ChatToolCall & Holder {
  const server = call.extra_content?.server
  const state = server?.vendor === vendor && isJsonObject(server.call) ? callState(server.call) : undefined
  return { ...withoutServer(call), ...(state && { [STATE]: state }) }
}

function withoutServer<Carrier extends ChatMessage | ChatToolCall>(carrier: Carrier): Carrier {
  if (carrier.extra_content?.server === undefined) return carrier
  const { server: _state, ...others } = carrier.extra_content
  const bare = { ...carrier, extra_content: others }
  if (Object.keys(others).length === 0) Reflect.deleteProperty(bare, 'extra_content')
  return bare
}

function extrasOf({ extra_content: own, tool_calls: calls }: ChatMessage): (ExtraContent | undefined)[] {
  return [own, ...(calls?.map(({ extra_content: extra }) => extra) ?? [])]
}

/** Puts the state that waits with messages and calls into the members that the server gave it in. */
export function restoredState(messages: readonly ChatMessage[]): unknown[] {
  return messages.map((message) => {
    const calls = message.tool_calls?.map((call) => ({ ...call, ...(call as Holder)[STATE] }))
    return { ...message, ...(calls && { tool_calls: calls }), ...(message as Holder)[STATE] }
  })
}
