import type { ChatPrompt } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  credentialOf,
  eventText,
  jsonReply,
  type Refuse,
  refusals,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

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

/** Anthropic's errors. */
export const ANTHROPIC_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'invalid_request_error'],
    401: ['invalid x-api-key', 'authentication_error'],
    402: ['Your credit balance is too low to access the Anthropic API.', 'billing_error'],
    403: ['Your API key does not have permission to use the specified resource.', 'permission_error'],
    404: ['model: not found', 'not_found_error'],
    409: ['The request conflicts with another one.', 'conflict_error'],
    413: ['Request exceeds the maximum size', 'request_too_large'],
    429: ['This request would exceed the rate limit for your organization.', 'rate_limit_error'],
    500: ['Internal server error', 'api_error'],
    504: ['The request timed out.', 'timeout_error'],
    529: ['Overloaded', 'overloaded_error'],
  },
  (status, message, [type]) => anthropicError(status, { type, message }),
  {
    quota: () => ANTHROPIC_ERRORS.status(402),
    streamEvent: () =>
      eventText({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
  },
)

/** Returns an error with the usual envelope. */
export function anthropicError(status: number, error: object): SandboxReply {
  return jsonReply(status, ANTHROPIC_HEADERS, { type: 'error', error, request_id: REQUEST_ID })
}

/** Rejects a request with 400. */
export const refuseAnthropic: Refuse = refusals(ANTHROPIC_ERRORS)

const VERSIONS = ['2023-06-01', '2026-10-21']

/** Makes operations of Anthropic's API, which need a key, in either header, and a version. */
export const anthropicOperation = vendorOperations({
  vendor: 'anthropic',
  errors: ANTHROPIC_ERRORS,
  headers: ANTHROPIC_HEADERS,
  access(call) {
    if (credentialOf(call) === '') refuseAnthropic('x-api-key header is required', 401)
    const version = call.headers['anthropic-version']
    if (version === undefined) refuseAnthropic('anthropic-version: header is required')
    if (!VERSIONS.includes(version)) refuseAnthropic(`anthropic-version: "${version}" is not a valid version`)
  },
})

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
  if (family === 'fable' || family === 'mythos')
    return { ...fifth, thinking: ['adaptive'], takesForcedToolChoice: version < 5.1 }
  if (version < 5.5) return { ...fifth, sampling: 'default', thinking: ['adaptive', 'disabled'] }
  const offValue = family === 'sonnet' ? ['between_tools'] : []
  return { ...fifth, thinking: ['adaptive', ...offValue], takesForcedToolChoice: false }
}

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

function isThinking(request: Fields): boolean {
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

function textOf(message: Fields): string {
  return blocksOf(message)
    .filter((block) => block['type'] === 'text')
    .map((block) => asText(block['text']))
    .join('')
}

function resultTexts(message: Fields): string[] {
  return blocksOf(message)
    .filter((block) => block['type'] === 'tool_result')
    .map((block) => textOf({ content: block['content'] }))
}

function toolChoice(choice: Fields): ChatPrompt['toolChoice'] {
  if (choice['type'] === 'tool') return { name: asText(choice['name']) }
  if (choice['type'] === 'any') return 'required'
  return choice['type'] === 'none' ? 'none' : 'auto'
}

/** Returns the content blocks of a message. Plain text is one block. */
export function blocksOf(message: Fields): Fields[] {
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
