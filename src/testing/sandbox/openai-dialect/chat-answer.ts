import { type ChatTurn, type TurnUsage, words } from '../model/chat-turn.ts'
import { asNumber, asObject, asText } from '../request-fields.ts'
import { type AnswerContext, jsonReply, type SandboxReply, streamReply } from '../sandbox-operation.ts'

/** Differences between the answers of vendors of OpenAI's chat format. */
export interface ChatDialect {
  /** Returns the model id in answers, derived from the requested one. */
  answerModel(asked: string): string
  /** Whether `reasoning_content` contains the reasoning. Otherwise, only the usage report shows it. */
  readonly showsReasoning: boolean
  /** Whether messages have `refusal` and `annotations`, answers `service_tier`, and chunks `obfuscation`. */
  readonly hasOfficialExtras: boolean
  /** The id on later chunks of a tool call, if any. */
  readonly laterToolCallId: string | undefined
  /** Returns `usage` in this vendor's layout. */
  usage(usage: TurnUsage): Record<string, unknown>
}

/** The dialect of compatible servers: reasoning next to the text, and nothing that only OpenAI has. */
export const COMPATIBLE_DIALECT: ChatDialect = {
  answerModel: (asked) => asked,
  showsReasoning: true,
  hasOfficialExtras: false,
  laterToolCallId: undefined,
  usage: ({ prompt, cached, completion, reasoning }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
}

/** Inputs of an answer. */
interface AnswerParts {
  readonly request: Readonly<Record<string, unknown>>
  readonly turn: ChatTurn
  readonly context: AnswerContext
  readonly dialect: ChatDialect
}

/** Returns the answer to a chat request in OpenAI's format: JSON, or a stream if requested. */
export function chatAnswer(
  body: unknown,
  turn: ChatTurn,
  context: AnswerContext,
  dialect: ChatDialect,
  headers: readonly string[],
): SandboxReply {
  const parts: AnswerParts = { request: asObject(body), turn, context, dialect }
  if (parts.request['stream'] === true) {
    return streamReply(
      headers,
      chatEvents(parts),
      event({ ...chunkHead(parts), choices: [choice(0, { content: ' more' })] }),
    )
  }
  return jsonReply(200, headers, wholeAnswer(parts))
}

function wholeAnswer({ request, turn, context, dialect }: AnswerParts): Record<string, unknown> {
  const head = answerHead('chat.completion', { request, context, dialect })
  const choices = Array.from({ length: choiceCount(request) }, (_, index) => ({
    index,
    message: message(turn, dialect, context.id),
    logprobs: request['logprobs'] === true ? logprobs(turn.words) : null,
    finish_reason: finishReason(turn),
  }))
  const usage = context.usage(dialect.usage(usageOf(turn, choices.length)))
  return dialect.hasOfficialExtras
    ? { ...head, choices, usage, service_tier: 'default', system_fingerprint: null }
    : { ...head, choices, usage, system_fingerprint: null }
}

function message(turn: ChatTurn, dialect: ChatDialect, id: string): Record<string, unknown> {
  const calls = turn.toolCalls.map((call, index) => ({
    id: `call_${id}${index}`,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
  return {
    role: 'assistant',
    content:
      calls.length > 0 && turn.words.length === 0 ? (dialect.hasOfficialExtras ? null : '') : turn.words.join(''),
    ...(dialect.hasOfficialExtras ? { refusal: null, annotations: [] } : {}),
    ...(dialect.showsReasoning && turn.reasoning.length > 0 ? { reasoning_content: turn.reasoning.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
}

function chatEvents(parts: AnswerParts): string[] {
  const { request, turn, context, dialect } = parts
  const head = chunkHead(parts)
  const wantsUsage = asObject(request['stream_options'])['include_usage'] === true
  const choiceIndexes = Array.from({ length: choiceCount(request) }, (_, index) => index)
  const deltas: Record<string, unknown>[] = [
    { role: 'assistant', content: '', ...(dialect.hasOfficialExtras ? { refusal: null } : {}) },
    ...(dialect.showsReasoning ? turn.reasoning.map((word) => ({ content: null, reasoning_content: word })) : []),
    ...turn.words.map((word) => ({ content: word })),
    ...toolCallDeltas(turn, dialect, context.id),
  ]
  const hidesObfuscation = asObject(request['stream_options'])['include_obfuscation'] === false
  const obfuscation = dialect.hasOfficialExtras && !hidesObfuscation ? { obfuscation: context.id.slice(0, 9) } : {}
  const chunk = (index: number, delta: Record<string, unknown>, finish: string | null): string => {
    const word = delta['content']
    const wordLogprobs = request['logprobs'] === true && asText(word) !== '' ? logprobs([asText(word)]) : null
    const usage = wantsUsage ? { usage: null } : {}
    return event({ ...head, choices: [choice(index, delta, finish, wordLogprobs)], ...usage, ...obfuscation })
  }
  const events = deltas.flatMap((delta) => choiceIndexes.map((index) => chunk(index, delta, null)))
  events.push(...choiceIndexes.map((index) => chunk(index, {}, finishReason(turn))))
  const usage = context.usage(dialect.usage(usageOf(turn, choiceIndexes.length)))
  if (wantsUsage && usage !== undefined) events.push(event({ ...head, choices: [], usage, ...obfuscation }))
  return [...events, 'data: [DONE]\n\n']
}

function toolCallDeltas(turn: ChatTurn, dialect: ChatDialect, id: string): Record<string, unknown>[] {
  const later = dialect.laterToolCallId === undefined ? {} : { id: dialect.laterToolCallId, type: 'function' }
  return turn.toolCalls.flatMap((call, index) => {
    const first = { index, id: `call_${id}${index}`, type: 'function', function: { name: call.name, arguments: '' } }
    const pieces = words(JSON.stringify(call.arguments))
    return [
      { tool_calls: [first] },
      ...pieces.map((piece) => ({ tool_calls: [{ index, ...later, function: { arguments: piece } }] })),
    ]
  })
}

function answerHead(
  object: string,
  { request, context, dialect }: Pick<AnswerParts, 'request' | 'context' | 'dialect'>,
): Record<string, unknown> {
  return {
    id: `chatcmpl-${context.id}`,
    object,
    created: Math.floor(context.nowMs / 1000),
    model: dialect.answerModel(asText(request['model'])),
  }
}

function chunkHead(parts: AnswerParts): Record<string, unknown> {
  const head = answerHead('chat.completion.chunk', parts)
  return { ...head, ...(parts.dialect.hasOfficialExtras ? { service_tier: 'default' } : {}), system_fingerprint: null }
}

function choice(
  index: number,
  delta: Record<string, unknown>,
  finish: string | null = null,
  wordLogprobs: unknown = null,
): Record<string, unknown> {
  return { index, delta, logprobs: wordLogprobs, finish_reason: finish }
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function logprobs(tokens: readonly string[]): Record<string, unknown> {
  const content = tokens.map((token) => ({ token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] }))
  return { content, refusal: null }
}

function choiceCount(request: AnswerParts['request']): number {
  return asNumber(request['n']) ?? 1
}

/** Every choice is generated separately, so n choices cost n answers for one prompt. */
function usageOf(turn: ChatTurn, choices: number): ChatTurn['usage'] {
  const { completion, reasoning } = turn.usage
  return { ...turn.usage, completion: completion * choices, reasoning: reasoning * choices }
}

function finishReason(turn: ChatTurn): string {
  if (turn.ending === 'stop-sequence') return 'stop'
  if (turn.ending === 'blocked') return 'content_filter'
  return turn.ending === 'tool-calls' ? 'tool_calls' : turn.ending
}
