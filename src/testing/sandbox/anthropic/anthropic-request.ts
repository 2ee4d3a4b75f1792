import type { ChatPrompt } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { jsonReply, RefusedCall, type VendorErrors } from '../sandbox-operation.ts'

const REQUEST_ID = 'req_011sandbox'

/** Headers of every answer. None of them is meant for the gateway's caller. */
export const ANTHROPIC_HEADERS: readonly string[] = [
  'request-id',
  REQUEST_ID,
  'anthropic-organization-id',
  '00000000-0000-4000-8000-00000000a17c',
  'anthropic-ratelimit-requests-limit',
  '4000',
  'anthropic-ratelimit-requests-remaining',
  '3999',
  'anthropic-ratelimit-requests-reset',
  '2026-01-01T00:00:01Z',
  'set-cookie',
  '_cfuvid=sandbox; path=/; HttpOnly; Secure',
]

const USUAL: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ['invalid_request_error', 'The request is invalid.'],
  401: ['authentication_error', 'invalid x-api-key'],
  402: ['billing_error', 'Your credit balance is too low to access the Anthropic API.'],
  403: ['permission_error', 'Your API key does not have permission to use the specified resource.'],
  404: ['not_found_error', 'model: not found'],
  409: ['conflict_error', 'The request conflicts with another one.'],
  413: ['request_too_large', 'Request exceeds the maximum size'],
  429: ['rate_limit_error', 'This request would exceed the rate limit for your organization.'],
  500: ['api_error', 'Internal server error'],
  504: ['timeout_error', 'The request timed out.'],
  529: ['overloaded_error', 'Overloaded'],
}

/** Anthropic's errors. */
export const ANTHROPIC_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [type, text] =
      USUAL[status] ??
      (status >= 500 ? ['api_error', 'Internal server error'] : ['invalid_request_error', 'The request is invalid.'])
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    const error = { type, message: message ?? text }
    return jsonReply(status, [...ANTHROPIC_HEADERS, ...wait], { type: 'error', error, request_id: REQUEST_ID })
  },
  quota: () => ANTHROPIC_ERRORS.status(402),
  badKey: () => ANTHROPIC_ERRORS.status(401),
  streamEvent: () =>
    `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })}\n\n`,
}

/** Rejects a request with 400. */
export function refuseAnthropic(message: string): never {
  throw new RefusedCall(ANTHROPIC_ERRORS.status(400, message))
}

/** Fields and values that a model accepts. Source: Anthropic's migration guides and release notes. */
export interface AnthropicModelRules {
  /** Sampling fields: `one` of temperature and top_p, `default` values only, or `none`, which rejects them. */
  readonly sampling: 'one' | 'default' | 'none'
  /** Accepted values of `thinking.type`. */
  readonly thinking: readonly string[]
  readonly thinksByDefault: boolean
  /** Whether the text of thinking stays empty unless `display: "summarized"` is sent. */
  readonly hidesThinking: boolean
  readonly takesPrefill: boolean
  readonly takesForcedToolChoice: boolean
  readonly maxOutputTokens: number
}

const OLDEST: AnthropicModelRules = {
  sampling: 'one',
  thinking: ['enabled', 'disabled'],
  thinksByDefault: false,
  hidesThinking: false,
  takesPrefill: true,
  takesForcedToolChoice: true,
  maxOutputTokens: 64_000,
}

/** Returns the rules of a model from the family and version in its id. Other ids get the oldest rules. */
export function anthropicModelRules(model: string): AnthropicModelRules {
  const match = /^claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(model)
  const family = match?.[1] ?? ''
  const version = Number(match?.[2] ?? 0) + Number(match?.[3] ?? 0) / 10
  if (version < 4.6) return OLDEST
  const newer = { ...OLDEST, takesPrefill: false, maxOutputTokens: 128_000 }
  if (version < 4.7) return { ...newer, thinking: ['adaptive', 'enabled', 'disabled'] }
  const hidden = { ...newer, hidesThinking: true }
  if (version < 5) return { ...hidden, sampling: 'default', thinking: ['adaptive', 'disabled'] }
  const fifth = { ...hidden, thinksByDefault: true, sampling: 'none' as const }
  if (family === 'haiku') return { ...fifth, thinking: ['adaptive', 'disabled'] }
  if (family === 'fable' || family === 'mythos') {
    return { ...fifth, thinking: ['adaptive'], takesForcedToolChoice: version < 5.1 }
  }
  if (version < 5.5) return { ...fifth, sampling: 'default', thinking: ['adaptive', 'disabled'] }
  const offValue = family === 'sonnet' ? ['between_tools'] : []
  return { ...fifth, thinking: ['adaptive', ...offValue], takesForcedToolChoice: false }
}

type Json = Readonly<Record<string, unknown>>

/** Reads a request in Anthropic's Messages format. Never throws, whatever its shape. */
export function readMessagesPrompt(body: unknown): ChatPrompt {
  const request = asObject(body)
  const messages = asList(request['messages']).map(asObject)
  const userTurns = messages.filter((message) => message['role'] === 'user')
  const lastSpoken = userTurns.findLast((message) => textOf(message) !== '') ?? {}
  const last = messages.at(-1) ?? {}
  const results = last['role'] === 'user' && textOf(last) === '' ? resultTexts(last) : []
  const choice = asObject(request['tool_choice'])
  const format = asObject(asObject(request['output_config'])['format'])
  return {
    texts: [
      systemText(request['system']),
      ...messages.flatMap((message) => [textOf(message), ...resultTexts(message)]),
    ],
    lastUserText: textOf(lastSpoken),
    lastUserImages: blocksOf(lastSpoken).filter((block) => block['type'] === 'image').length,
    toolResults: results,
    tools: asList(request['tools'])
      .map(asObject)
      .map((tool) => ({ name: asText(tool['name']), schema: asObject(tool['input_schema']) }))
      .filter((tool) => tool.name !== ''),
    toolChoice: toolChoice(choice),
    parallelToolCalls: choice['disable_parallel_tool_use'] !== true,
    json: format['type'] === 'json_schema' ? { schema: asObject(format['schema']) } : undefined,
    reasoning: isThinking(request),
    maxTokens: asNumber(request['max_tokens']),
    stop: asList(request['stop_sequences']).map(asText),
    prefill: last['role'] === 'assistant' ? textOf(last) : '',
  }
}

function isThinking(request: Json): boolean {
  const { thinking } = request
  if (!isGiven(thinking)) return anthropicModelRules(asText(request['model'])).thinksByDefault
  return ['enabled', 'adaptive', 'between_tools'].includes(asText(asObject(thinking)['type']))
}

function systemText(system: unknown): string {
  if (typeof system === 'string') return system
  return asList(system)
    .map((block) => asText(asObject(block)['text']))
    .join('')
}

function textOf(message: Json): string {
  return blocksOf(message)
    .filter((block) => block['type'] === 'text')
    .map((block) => asText(block['text']))
    .join('')
}

function resultTexts(message: Json): string[] {
  return blocksOf(message)
    .filter((block) => block['type'] === 'tool_result')
    .map((block) => textOf({ content: block['content'] }))
}

function toolChoice(choice: Json): ChatPrompt['toolChoice'] {
  if (choice['type'] === 'tool') return { name: asText(choice['name']) }
  if (choice['type'] === 'any') return 'required'
  return choice['type'] === 'none' ? 'none' : 'auto'
}

/** Returns the content blocks of a message. Plain text is one block. */
export function blocksOf(message: Json): Json[] {
  const { content } = message
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content).map(asObject)
}

const MARK = 'sandbox-thinking:'

/** Returns a signature for thinking. It is opaque like a real one, and must be sent back with its block. */
export function thinkingSignature(id: string): string {
  return Buffer.from(`${MARK}${id}`).toString('base64')
}

/** Whether the stand-in created the signature. */
export function isSandboxSignature(value: unknown): boolean {
  return typeof value === 'string' && Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}
