import type { ChatPrompt } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import {
  credentialOf,
  eventText,
  headerList,
  jsonReply,
  type Refuse,
  refusals,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

const REQUEST_ID = 'req_011sandbox'

/** Headers of every answer. None of them is meant for the gateway's caller. */
export const ANTHROPIC_HEADERS = headerList(`
  request-id: ${REQUEST_ID}
  anthropic-organization-id: 00000000-0000-4000-8000-00000000a17c
  anthropic-ratelimit-requests-limit: 4000
  anthropic-ratelimit-requests-remaining: 3999
  anthropic-ratelimit-requests-reset: 2026-01-01T00:00:01Z
  set-cookie: _cfuvid=sandbox; path=/; HttpOnly; Secure
`)

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
interface AnthropicModelRules {
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
function isSandboxSignature(value: unknown): boolean {
  return typeof value === 'string' && Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}

const FIELDS = names(`
  model messages max_tokens system temperature top_p top_k stop_sequences stream tools tool_choice thinking
  output_config metadata service_tier speed cache_control container inference_geo diagnostics
`)
const MIN_THINKING_BUDGET = 1024

/** Checks everything except messages. With any feature in the header `anthropic-beta`, unknown fields are accepted. */
export function checkAnthropicFields(request: Fields, version: string, hasBeta: boolean): void {
  for (const field of Object.keys(request)) {
    if (!FIELDS.has(field) && !hasBeta) refuseAnthropic(`${field}: Extra inputs are not permitted`)
  }
  const model = asText(request['model'])
  const rules = anthropicModelRules(model)
  const maxTokens = asNumber(request['max_tokens']) ?? 0
  if (maxTokens > rules.maxOutputTokens)
    refuseAnthropic(
      `max_tokens: ${maxTokens} > ${rules.maxOutputTokens}, which is the maximum allowed number of output tokens for ${model}`,
    )
  checkSampling(request, rules, version)
  checkThinking(request, rules)
  checkTools(request, rules)
  asList(request['stop_sequences']).forEach((sequence, position) => {
    if (asText(sequence).trim() === '')
      refuseAnthropic(`stop_sequences.${position}: each stop sequence must contain non-whitespace`)
  })
  checkOutputFormat(asObject(asObject(request['output_config'])['format']))
}

function checkSampling(request: Fields, rules: AnthropicModelRules, version: string): void {
  const given = ['temperature', 'top_p', 'top_k'].filter((field) => isGiven(request[field]))
  const [first] = given
  if (first === undefined) return
  if (version === '2026-10-21' || rules.sampling === 'none')
    refuseAnthropic(`${first}: this parameter is not supported`)
  for (const field of ['temperature', 'top_p']) {
    const value = request[field]
    if (!isGiven(value)) continue
    if (typeof value !== 'number') refuseAnthropic(`${field}: Input should be a valid number`)
    if (Number(value) < 0 || Number(value) > 1) refuseAnthropic(`${field}: range: 0..1`)
  }
  if (rules.sampling === 'one') {
    if (given.includes('temperature') && given.includes('top_p'))
      refuseAnthropic('`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
    return
  }
  const { temperature, top_p: topP, top_k: topK } = request
  if (isGiven(temperature) && temperature !== 1) refuseAnthropic('`temperature` may only be set to 1 for this model')
  if (isGiven(topP) && Number(topP) < 0.99) refuseAnthropic('`top_p` may only be set to 0.99 or above for this model')
  if (isGiven(topK)) refuseAnthropic('`top_k` is not supported for this model')
}

function checkThinking(request: Fields, rules: AnthropicModelRules): void {
  const thinking = asObject(request['thinking'])
  const type = asText(thinking['type'])
  if (!isGiven(request['thinking'])) return
  if (!rules.thinking.includes(type)) {
    const expected = rules.thinking.map((value) => `'${value}'`).join(', ')
    refuseAnthropic(
      `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  if (type !== 'enabled') return
  const budget = asNumber(thinking['budget_tokens'])
  if (budget === undefined) refuseAnthropic('thinking.enabled.budget_tokens: Field required')
  if (budget < MIN_THINKING_BUDGET)
    refuseAnthropic(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_THINKING_BUDGET}`)
  if (budget >= (asNumber(request['max_tokens']) ?? Number.POSITIVE_INFINITY))
    refuseAnthropic('`max_tokens` must be greater than `thinking.budget_tokens`.')
  if (isGiven(request['temperature']) && request['temperature'] !== 1)
    refuseAnthropic('`temperature` may only be set to 1 when thinking is enabled.')
}

function checkTools(request: Fields, rules: AnthropicModelRules): void {
  asList(request['tools'])
    .map(asObject)
    .forEach((tool, position) => {
      const isServerTool = isGiven(tool['type']) && tool['type'] !== 'custom'
      if (isServerTool) return
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(asText(tool['name'])))
        refuseAnthropic(`tools.${position}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
      const type = asObject(tool['input_schema'])['type']
      if (type === undefined) refuseAnthropic(`tools.${position}.custom.input_schema.type: Field required`)
      if (type !== 'object') refuseAnthropic(`tools.${position}.custom.input_schema.type: Input should be 'object'`)
    })
  const choice = asText(asObject(request['tool_choice'])['type'])
  if (choice !== '' && !['auto', 'any', 'tool', 'none'].includes(choice))
    refuseAnthropic(
      `tool_choice: Input tag '${choice}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'`,
    )
  if (choice !== '' && asList(request['tools']).length === 0)
    refuseAnthropic('tool_choice: tool_choice may only be specified while providing tools')
  if (choice !== 'any' && choice !== 'tool') return
  if (asObject(request['thinking'])['type'] === 'enabled')
    refuseAnthropic('Thinking may not be enabled when tool_choice forces tool use.')
  if (!rules.takesForcedToolChoice) refuseAnthropic('tool_choice: forcing tool use is not supported for this model')
}

// Limits that structured output does not support, by schema type.
const UNSUPPORTED = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
]

function checkOutputFormat(format: Fields): void {
  if (format['type'] === undefined) return
  if (format['type'] !== 'json_schema') refuseAnthropic("output_config.format.type: Input should be 'json_schema'")
  checkOutputSchema(format['schema'])
}

function checkOutputSchema(schema: unknown): void {
  if (Array.isArray(schema)) {
    for (const entry of schema) checkOutputSchema(entry)
    return
  }
  if (!isGiven(schema)) return
  const object = asObject(schema)
  if (object['type'] === 'object' && object['additionalProperties'] !== false)
    refuseAnthropic(
      "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    )
  const limit = typeof object['type'] === 'string' ? UNSUPPORTED.find((keyword) => keyword in object) : undefined
  if (limit !== undefined)
    refuseAnthropic(
      `output_config.format.schema: For '${asText(object['type'])}' type, property '${limit}' is not supported`,
    )
  for (const entry of Object.values(asObject(object['properties']))) checkOutputSchema(entry)
  for (const entry of Object.values(asObject(object['$defs']))) checkOutputSchema(entry)
  checkOutputSchema(object['items'])
  checkOutputSchema(object['anyOf'])
}

const ROLES = ['user', 'assistant', 'system']
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const MAX_BREAKPOINTS = 4

/** Checks `messages`. Source: Anthropic's documentation of messages, tool use, thinking and caching. */
export function checkAnthropicMessages(request: Fields): void {
  const messages = asList(request['messages']).map(asObject)
  if (messages.length === 0) refuseAnthropic('messages: at least one message is required')
  messages.forEach((message, position) => {
    checkMessage(message, position)
  })
  checkSystemPositions(messages)
  checkToolPairs(messages)
  checkPrefill(messages, asText(request['model']))
  checkThinkingFirst(request, messages)
  checkBreakpoints(request)
}

function checkMessage(message: Fields, position: number): void {
  const role = asText(message['role'])
  if (!ROLES.includes(role))
    refuseAnthropic(`messages.${position}.role: Input should be ${ROLES.map((name) => `'${name}'`).join(', ')}`)
  // An instruction may change only the effort.
  if (role === 'system' && !isGiven(message['content']) && isGiven(message['output_config'])) return
  if (!isGiven(message['content'])) refuseAnthropic(`messages.${position}.content: Field required`)
  const blocks = blocksOf(message)
  if (message['content'] === '' || blocks.length === 0)
    refuseAnthropic(
      `messages.${position}: all messages must have non-empty content except for the optional final assistant message`,
    )
  blocks.forEach((block, index) => {
    checkBlock(block, role, `messages.${position}.content.${index}`)
  })
}

const TOOL_ID = /^[a-zA-Z0-9_-]+$/

function checkBlock(block: Fields, role: string, place: string): void {
  switch (block['type']) {
    case 'text':
      if (asText(block['text']) === '') refuseAnthropic('messages: text content blocks must be non-empty')
      return
    case 'image':
      if (role !== 'user') refuseAnthropic(`${place}: image blocks are only allowed in user messages`)
      checkImage(asObject(block['source']), place)
      return
    case 'tool_use':
      if (role !== 'assistant') refuseAnthropic(`${place}: \`tool_use\` blocks can only be in \`assistant\` messages`)
      if (!isGiven(block['input']) || Array.isArray(block['input']) || typeof block['input'] !== 'object')
        refuseAnthropic(`${place}.tool_use.input: Input should be a valid dictionary`)
      if (!TOOL_ID.test(asText(block['id'])))
        refuseAnthropic(`${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
      return
    case 'tool_result':
      if (role !== 'user') refuseAnthropic(`${place}: \`tool_result\` blocks can only be in \`user\` messages`)
      return
    case 'thinking':
      if (isGiven(block['cache_control']))
        refuseAnthropic(`${place}.thinking.cache_control: Extra inputs are not permitted`)
      if (!isSandboxSignature(block['signature']))
        refuseAnthropic(`${place}: Invalid \`signature\` in \`thinking\` block`)
      return
    case undefined:
      refuseAnthropic(`${place}.type: Field required`)
      break
    case 'image_url':
    case 'input_audio':
    case 'refusal':
    case 'function':
      refuseAnthropic(
        `${place}: Input tag '${block['type']}' found using 'type' does not match any of the expected tags`,
      )
  }
}

function checkImage(source: Fields, place: string): void {
  if (source['type'] === 'url' || source['type'] === 'file') return
  if (source['type'] !== 'base64')
    refuseAnthropic(`${place}.image.source: Input tag '${asText(source['type'])}' is not expected`)
  if (!IMAGE_TYPES.includes(asText(source['media_type'])))
    refuseAnthropic(
      `${place}.image.source.base64.media_type: Input should be ${IMAGE_TYPES.map((type) => `'${type}'`).join(', ')}`,
    )
  if (!/^[A-Za-z0-9+/]+=*$/.test(asText(source['data'])))
    refuseAnthropic(`${place}.image.source.base64: invalid base64 data`)
}

/** A system message follows a user turn and is last or precedes an assistant turn; several count as one. */
function checkSystemPositions(messages: readonly Fields[]): void {
  if (messages[0]?.['role'] === 'system')
    refuseAnthropic('messages.0: use the top-level `system` parameter for the initial system prompt')
  const turns = messages.filter(
    (message, position) => message['role'] !== 'system' || messages[position - 1]?.['role'] !== 'system',
  )
  turns.forEach((message, position) => {
    if (message['role'] !== 'system') return
    const next = turns[position + 1]
    if (turns[position - 1]?.['role'] === 'user' && (next === undefined || next['role'] === 'assistant')) return
    refuseAnthropic('messages: `system` messages must follow a user turn and precede an assistant turn')
  })
}

function checkPrefill(messages: readonly Fields[], model: string): void {
  const last = messages.at(-1)
  if (last?.['role'] !== 'assistant') return
  if (!anthropicModelRules(model).takesPrefill)
    refuseAnthropic(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  if (/\s$/.test(asText(blocksOf(last).at(-1)?.['text'])))
    refuseAnthropic('messages: final assistant content cannot end with trailing whitespace')
}

/** Within a tool loop, the last assistant turn begins with the thinking that led to the call. */
function checkThinkingFirst(request: Fields, messages: readonly Fields[]): void {
  if (asObject(request['thinking'])['type'] !== 'enabled') return
  const lastUser = messages.at(-1)
  const isInLoop = lastUser !== undefined && blocksOf(lastUser).some((block) => block['type'] === 'tool_result')
  const position = messages.findLastIndex((message) => message['role'] === 'assistant')
  if (!isInLoop || position === -1) return
  const type = asText(blocksOf(messages[position] ?? {})[0]?.['type'])
  if (type === 'thinking' || type === 'redacted_thinking') return
  refuseAnthropic(
    `messages.${position}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
  )
}

function checkBreakpoints(request: Fields): void {
  const blocks = [
    ...asList(request['system']).map(asObject),
    ...asList(request['tools']).map(asObject),
    ...asList(request['messages']).flatMap((message) => blocksOf(asObject(message))),
  ]
  const count = blocks.filter((block) => isGiven(block['cache_control'])).length
  if (count <= MAX_BREAKPOINTS) return
  refuseAnthropic(`A maximum of ${MAX_BREAKPOINTS} blocks with cache_control may be provided. Found ${count}.`)
}

interface Turn {
  readonly role: string
  readonly blocks: Fields[]
}

/** Adjacent messages of one role are one turn to Anthropic. */
function joinTurns(messages: readonly Fields[]): Turn[] {
  const turns: Turn[] = []
  for (const message of messages) {
    const role = asText(message['role'])
    const last = turns.at(-1)
    if (last?.role === role) last.blocks.push(...blocksOf(message))
    else turns.push({ role, blocks: blocksOf(message) })
  }
  return turns
}

/** Checks that every call has a result at the start of the next turn, and every result has a call. */
function checkToolPairs(messages: readonly Fields[]): void {
  const turns = joinTurns(messages)
  const ids = turns.flatMap(({ blocks }) => idsOf(blocks, 'tool_use', 'id'))
  if (new Set(ids).size < ids.length) refuseAnthropic('messages: `tool_use` ids must be unique')
  turns.forEach((turn, position) => {
    if (turn.role === 'assistant') {
      const next = turns[position + 1]
      const answered = leadingResults(next)
      const missing = idsOf(turn.blocks, 'tool_use', 'id').filter((id) => !answered.includes(id))
      if (missing.length > 0)
        refuseAnthropic(
          `messages.${position}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
        )
      return
    }
    const results = idsOf(turn.blocks, 'tool_result', 'tool_use_id')
    const before = turns[position - 1]
    const called = before?.role === 'assistant' ? idsOf(before.blocks, 'tool_use', 'id') : []
    const unexpected = results.find((id) => !called.includes(id))
    if (unexpected !== undefined)
      refuseAnthropic(
        `messages.${position}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${unexpected}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    if (new Set(results).size < results.length)
      refuseAnthropic(
        `messages.${position}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with one id`,
      )
  })
}

/** Returns the ids of the results before any other block. */
function leadingResults(turn: Turn | undefined): string[] {
  if (turn?.role !== 'user') return []
  const end = turn.blocks.findIndex((block) => block['type'] !== 'tool_result')
  return idsOf(end === -1 ? turn.blocks : turn.blocks.slice(0, end), 'tool_result', 'tool_use_id')
}

function idsOf(blocks: readonly Fields[], type: string, field: string): string[] {
  return blocks.filter((block) => block['type'] === type).map((block) => asText(block[field]))
}
