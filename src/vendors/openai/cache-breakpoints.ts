import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { plainMessages } from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'

/** Maximum breakpoints in addition to the implicit one at the end of the prompt (OpenAI, "Prompt caching"). */
const MOST_BREAKPOINTS = 3

/** GPT-5.6 and later. */
const WITH_BREAKPOINTS = /^(?:ft:)?gpt-(?:[6-9]|[12]\d|5\.(?:[6-9]|\d{2}))/

/** Whether a model supports `prompt_cache_breakpoint`. */
export function takesBreakpoints(upstream: string): boolean {
  return WITH_BREAKPOINTS.test(upstream)
}

/** Returns the rules of a model with breakpoints: marks of Anthropic's dialect become breakpoints, but only the last three. */
export function breakpointRules(rules: FieldRules<ChatRequest>): FieldRules<ChatRequest> {
  return { ...rules, messages: markedMessages, tools: plainTools }
}

const markedMessages: FieldMapping<ChatRequest> = {
  needed: (value, request) => plainMessages.needed(value, request) || marksIn(value) > 0,
  apply: (body, value) => {
    plainMessages.apply(body, value)
    body['messages'] = withBreakpoints(body['messages'] as ChatMessage[])
  },
  losses: (value) => (marksIn(value) > MOST_BREAKPOINTS ? ['cache_control'] : []),
}

/** Rules of a chat that is translated into Responses, which itself reports marks that it has no place for. */
export const RESPONSES_BREAKPOINTS: FieldRules<ChatRequest> = {
  messages: {
    needed: (value) => marksIn(value, isItemOfParts) > 0,
    apply: (body, value) => {
      body['messages'] = withBreakpoints(value as ChatMessage[], isItemOfParts)
    },
    losses: (value) => (marksIn(value, isItemOfParts) > MOST_BREAKPOINTS ? ['cache_control'] : []),
  },
}

/** In Responses, parts of answers and tool outputs cannot have breakpoints. */
function isItemOfParts({ role }: ChatMessage): boolean {
  return role !== 'assistant' && role !== 'tool'
}

function withBreakpoints(
  messages: readonly ChatMessage[],
  takesThem?: (message: ChatMessage) => boolean,
): ChatMessage[] {
  let surplus = marksIn(messages, takesThem) - MOST_BREAKPOINTS
  return messages.map((message) => {
    if (!Array.isArray(message.content) || !message.content.some(isMarked) || takesThem?.(message) === false)
      return message
    const content = message.content.map((part) => {
      if (!isMarked(part)) return part
      const { cache_control: _mark, ...rest } = part as typeof part & { cache_control: unknown }
      // A breakpoint of the caller is kept.
      if ('prompt_cache_breakpoint' in rest || surplus-- > 0) return rest
      return { ...rest, prompt_cache_breakpoint: { mode: 'explicit' } }
    })
    return { ...message, content } as ChatMessage
  })
}

/** Tools come before the first message, where no breakpoint is possible. */
const plainTools: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.some(isMarked),
  apply: (body, value) => {
    body['tools'] = (value as object[]).map((tool) => {
      const { cache_control: _mark, ...rest } = tool as { cache_control?: unknown }
      return rest
    })
  },
  losses: () => ['tools.cache_control'],
}

function marksIn(messages: unknown, takesThem?: (message: ChatMessage) => boolean): number {
  let marks = 0
  for (const message of messages as readonly ChatMessage[])
    if (Array.isArray(message.content) && takesThem?.(message) !== false)
      for (const part of message.content) if (isMarked(part)) marks += 1
  return marks
}

function isMarked(part: object): boolean {
  return isJsonObject((part as { readonly cache_control?: unknown }).cache_control)
}
