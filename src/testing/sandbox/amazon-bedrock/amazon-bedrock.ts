import { Buffer } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from '../anthropic/anthropic.ts'
import { type ChatPrompt, type ChatTurn, chatTurn, words } from '../model/chat-turn.ts'
import { embeddingTokens, unitVector } from '../model/embedding.ts'
import { refuseOpenai } from '../openai/openai.ts'
import { COMPATIBLE_DIALECT, chatOperation } from '../openai-dialect/chat.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  eventText,
  fileReply,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** Models that can only be called through an inference profile. */
const PROFILE_ONLY = /^anthropic\.claude-(?:opus|sonnet|haiku|fable)-\d/

/** Rejects a call without a bearer token or a valid signature. A bearer token takes precedence, as in the service. */
function checkAccess(call: SandboxCall, nowMs: number): void {
  const { authorization } = call.headers
  if (authorization === undefined)
    refuseAws(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token', nowMs)
  if (/^Bearer /i.test(authorization)) {
    if (credentialOf(call) === 'expired') refuseAws(403, 'ExpiredTokenException', 'The token has expired', nowMs)
    return
  }
  checkAwsSignature(call, nowMs)
}

/** Rejects ids of unknown models, and of models that need a profile. */
function checkModelId(id: string): void {
  if (/^arn:aws:bedrock:/.test(id)) return
  if (!/^[a-z0-9-]+\.[\w.:-]+$/.test(id))
    refuseAws(400, 'ValidationException', 'The provided model identifier is invalid.')
  if (PROFILE_ONLY.test(id)) {
    const message = `Invocation of model ID ${id} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`
    refuseAws(400, 'ValidationException', message)
  }
}

/** The identity that the stand-in knows, from AWS's own examples. It does not check session tokens. */
const SANDBOX_AWS_KEYS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
} as const

/** The region of the stand-in. */
const SANDBOX_AWS_REGION = 'us-east-1'

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/
const ALLOWED_SKEW_MS = 5 * 60 * 1000

/**
 * Checks the signature of a call like the service: it is computed again from the received request line, headers and bytes. Source:
 * AWS, "Create a signed AWS API request".
 */
function checkAwsSignature(call: SandboxCall, nowMs: number): void {
  const match = AUTHORIZATION.exec(call.headers['authorization'] ?? '')
  if (match === null)
    refuseAws(403, 'IncompleteSignatureException', 'Authorization header requires a signature.', nowMs)
  const [, keyId, day = '', region, service, names = '', signature] = match
  const refuse: (message: string, name?: string) => never = (message, name = 'InvalidSignatureException') =>
    refuseAws(403, name, message, nowMs)
  if (keyId !== SANDBOX_AWS_KEYS.accessKeyId)
    refuse('The security token included in the request is invalid.', 'UnrecognizedClientException')
  if (region !== SANDBOX_AWS_REGION || service !== 'bedrock') refuse('Credential should be scoped to a valid region.')
  if (call.headers['x-amz-security-token'] === 'expired')
    refuse('The security token included in the request is expired', 'ExpiredTokenException')
  const time = call.headers['x-amz-date'] ?? ''
  const signedAtMs = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  const now = stamp(nowMs)
  if (!(signedAtMs >= nowMs - ALLOWED_SKEW_MS))
    refuse(`Signature expired: ${time} is now earlier than ${stamp(nowMs - ALLOWED_SKEW_MS)} (${now} - 5 min.)`)
  if (signedAtMs > nowMs + ALLOWED_SKEW_MS)
    refuse(`Signature not yet current: ${time} is still later than ${stamp(nowMs + ALLOWED_SKEW_MS)} (${now} + 5 min.)`)
  const signed = names.split(';')
  if (!signed.includes('host') || !signed.includes('x-amz-date')) refuse('A header must be signed.')
  const payload = createHash('sha256').update(call.bytes).digest('hex')
  const canonical = [
    call.method,
    // The received path, encoded once more.
    call.path.split('/').map(encode).join('/'),
    canonicalQuery(call.query),
    ...signed.map((name) => `${name}:${(call.headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    names,
    payload,
  ].join('\n')
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/${service}/aws4_request\n${hash(canonical)}`
  let key = hmac(`AWS4${SANDBOX_AWS_KEYS.secretAccessKey}`, day)
  for (const part of [region, service, 'aws4_request']) key = hmac(key, part)
  if (hmac(key, text).toString('hex') !== signature) {
    // The real text contains the signed string, including the session token.
    const token = call.headers['x-amz-security-token']
    refuse(
      `The request signature we calculated does not match the signature you provided. The Canonical String should have been '${canonical}'${token === undefined ? '' : `, x-amz-security-token:${token}`}`,
    )
  }
}

/** Decoded pairs, encoded again in the one allowed way, in order. */
function canonicalQuery(query: string): string {
  const pairs = query === '' ? [] : query.split('&')
  return pairs
    .map((pair) => {
      const [name = '', value = ''] = pair
        .split('=')
        .map((part) => encode(decodeURIComponent(part.replaceAll('+', ' '))))
      return `${name}=${value}`
    })
    .sort()
    .join('&')
}

function stamp(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d+/g, '')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

const REQUEST_ID = '00000000-0000-4000-8000-0000000bed0c'

/** Headers of every answer. */
const BEDROCK_HEADERS: readonly string[] = ['x-amzn-requestid', REQUEST_ID]

/** AWS's errors: the name in a header, the text in the body. */
const BEDROCK_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'ValidationException'],
    401: ['The security token included in the request is invalid.', 'UnrecognizedClientException'],
    403: ['You are not authorized to perform this action.', 'AccessDeniedException'],
    404: ['The specified resource was not found.', 'ResourceNotFoundException'],
    408: ['The model took too long.', 'ModelTimeoutException'],
    424: ['The model returned an error.', 'ModelErrorException'],
    429: ['Too many requests, please wait before trying again.', 'ThrottlingException'],
    503: ['Bedrock is unable to process your request.', 'ServiceUnavailableException'],
    '4xx': ['The system encountered an unexpected error.', 'InternalServerException'],
    '5xx': ['The system encountered an unexpected error.', 'InternalServerException'],
  },
  (status, message, [name]) => awsError(status, name ?? '', message),
  {
    quota: () => awsError(400, 'ServiceQuotaExceededException', 'Your account has exceeded its quota.'),
    badKey: () =>
      awsError(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.'),
    streamEvent: () => eventText({ message: 'The model returned an error.' }, 'error'),
  },
)

/** Makes operations of Amazon Bedrock. */
const bedrockOperation = bedrockOperations(BEDROCK_ERRORS)

/** Returns a function that makes operations with errors of another form. */
function bedrockOperations(errors: VendorErrors) {
  return vendorOperations({ vendor: 'amazon-bedrock', errors, headers: BEDROCK_HEADERS, access: checkAccess })
}

/** Rejects a call with an exception, with the time of the service if given. */
function refuseAws(status: number, name: string, message: string, nowMs?: number): never {
  const date = nowMs === undefined ? [] : ['date', new Date(nowMs).toUTCString()]
  throw new RefusedCall(awsError(status, name, message, date))
}

function awsError(status: number, name: string, message: string, headers: readonly string[] = []): SandboxReply {
  const type = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`
  return jsonReply(status, [...BEDROCK_HEADERS, 'x-amzn-errortype', type, ...headers], { message })
}

const frameErrors = {
  ...BEDROCK_ERRORS,
  streamEvent: () => exceptionOf('modelStreamErrorException', 'The model failed.'),
}

/** Amazon Bedrock by Converse: whole answers, and streams in binary frames. */
const BEDROCK_CONVERSE = bedrockOperations(frameErrors)({
  operation: 'chat',
  post: /^\/bedrock\/model\/([^/]+)\/(converse|converse-stream)$/,
  prompt: (request) => conversePrompt(request).lastUserText,
  answer(_call, context, request, [id = '', method]) {
    checkModelId(decodeURIComponent(id))
    checkConverse(request)
    const turn = chatTurn(conversePrompt(request), context)
    return method === 'converse' ? whole(turn, context) : streamed(turn, context)
  },
})

function whole(turn: ChatTurn, context: AnswerContext): SandboxReply {
  const content = blocksOf(turn, context.id).map(({ block }) => block)
  return jsonReply(200, BEDROCK_HEADERS, {
    metrics: { latencyMs: 12 },
    output: { message: { role: 'assistant', content } },
    stopReason: STOP_REASONS[turn.ending],
    usage: context.usage(usageOf(turn)),
  })
}

function streamed(turn: ChatTurn, context: AnswerContext): SandboxReply {
  const usage = context.usage(usageOf(turn))
  const pieces = [
    eventOf('messageStart', { role: 'assistant' }),
    ...blocksOf(turn, context.id).flatMap(({ start, deltas }, contentBlockIndex) => [
      ...(start === undefined ? [] : [eventOf('contentBlockStart', { contentBlockIndex, start })]),
      ...deltas.map((delta) => eventOf('contentBlockDelta', { contentBlockIndex, delta })),
      eventOf('contentBlockStop', { contentBlockIndex }),
    ]),
    eventOf('messageStop', { stopReason: STOP_REASONS[turn.ending] }),
    ...(usage === undefined ? [] : [eventOf('metadata', { metrics: { latencyMs: 12 }, usage })]),
  ]
  return { ...fileReply('application/vnd.amazon.eventstream', '', BEDROCK_HEADERS), pieces, streamed: true }
}

interface AnswerBlock {
  readonly block: Fields
  /** Only calls of tools have one. */
  readonly start?: Fields
  readonly deltas: readonly Fields[]
}

function blocksOf(turn: ChatTurn, id: string): AnswerBlock[] {
  const blocks: AnswerBlock[] = []
  if (turn.reasoning.length > 0) {
    const signature = `signed-${id}`
    const deltas = turn.reasoning.map((text) => ({ reasoningContent: { text } }))
    blocks.push({
      block: { reasoningContent: { reasoningText: { text: turn.reasoning.join(''), signature } } },
      deltas: [...deltas, { reasoningContent: { signature } }],
    })
  }
  if (turn.words.length > 0)
    blocks.push({ block: { text: turn.words.join('') }, deltas: turn.words.map((text) => ({ text })) })
  turn.toolCalls.forEach((call, index) => {
    const head = { toolUseId: `tooluse_${id}${index}`, name: call.name }
    const pieces = Object.keys(call.arguments).length === 0 ? [] : words(JSON.stringify(call.arguments))
    blocks.push({
      block: { toolUse: { ...head, input: call.arguments } },
      start: { toolUse: head },
      deltas: pieces.map((input) => ({ toolUse: { input } })),
    })
  })
  return blocks
}

const STOP_REASONS: Readonly<Record<ChatTurn['ending'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  blocked: 'content_filtered',
}

/** The cached tokens are not among the input tokens. */
function usageOf({ usage: { prompt, cached, cacheWrite, completion } }: ChatTurn): Fields {
  const inputTokens = prompt - cached - cacheWrite
  return {
    inputTokens,
    outputTokens: completion,
    totalTokens: prompt + completion,
    cacheReadInputTokens: cached,
    cacheWriteInputTokens: cacheWrite,
  }
}

function conversePrompt(request: Fields): ChatPrompt {
  const messages = asList(request['messages']).map(asObject)
  const last = messages.at(-1) ?? {}
  const spoken = messages.findLast((message) => message['role'] === 'user' && messageTexts(message).length > 0) ?? {}
  const config = asObject(request['toolConfig'])
  const choice = asObject(config['toolChoice'])
  const inference = asObject(request['inferenceConfig'])
  const additional = asObject(request['additionalModelRequestFields'])
  const format = asObject(asObject(request['outputConfig'])['textFormat'])
  const schema = asText(asObject(asObject(format['structure'])['jsonSchema'])['schema'])
  const thinks = (value: unknown): boolean => ['enabled', 'adaptive'].includes(asText(asObject(value)['type']))
  return {
    texts: [
      ...messageTexts({ content: request['system'] }),
      ...messages.flatMap((one) => [...messageTexts(one), ...resultsOf(one)]),
    ],
    lastUserText: messageTexts(spoken).join(''),
    lastUserImages: contentOf(spoken).filter((block) => isGiven(block['image'])).length,
    toolResults: last['role'] === 'user' && messageTexts(last).length === 0 ? resultsOf(last) : [],
    tools: asList(config['tools']).flatMap((tool) => {
      const spec = asObject(asObject(tool)['toolSpec'])
      const name = asText(spec['name'])
      return name === '' ? [] : [{ name, schema: asObject(asObject(spec['inputSchema'])['json']) }]
    }),
    toolChoice: isGiven(choice['tool'])
      ? { name: asText(asObject(choice['tool'])['name']) }
      : isGiven(choice['any'])
        ? 'required'
        : 'auto',
    parallelToolCalls: true,
    json: schema === '' ? undefined : { schema: asObject(JSON.parse(schema)) },
    reasoning: thinks(additional['thinking']) || thinks(additional['reasoningConfig']),
    maxTokens: asNumber(inference['maxTokens']),
    stop: asList(inference['stopSequences']).map(asText),
    prefill: last['role'] === 'assistant' ? messageTexts(last).join('') : '',
  }
}

function contentOf(message: Fields): Fields[] {
  return asList(message['content']).map(asObject)
}

function messageTexts(message: Fields): string[] {
  return contentOf(message)
    .map((block) => asText(block['text']))
    .filter((text) => text !== '')
}

function resultsOf(message: Fields): string[] {
  return contentOf(message)
    .filter((block) => isGiven(block['toolResult']))
    .map((block) => messageTexts(asObject(block['toolResult'])).join(''))
}

const FIELDS = names(`
  messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields guardrailConfig performanceConfig
  serviceTier requestMetadata promptVariables additionalModelResponseFieldPaths
`)
const BLOCKS = names('text image document video audio toolUse toolResult reasoningContent cachePoint guardContent')
const RESULT_BLOCKS = names('text json image document')
const TOOL_ID = /^[a-zA-Z0-9_-]{1,64}$/
const FILE_NAME = /^[a-zA-Z0-9()[\]-]+(?: [a-zA-Z0-9()[\]-]+)*$/

/** Rejects what the service rejects (Bedrock, reference of `Converse`, and its users' reports of 400 answers). */
export function checkConverse(request: Fields): void {
  for (const field of Object.keys(request)) if (!FIELDS.has(field)) refuseConverse(`Unknown field ${field}`)
  const messages = asList(request['messages']).map(asObject)
  if (messages.length === 0) refuseConverse('messages must not be empty')
  const seen: Seen = { calls: new Set(), files: new Set(), hasTools: isGiven(request['toolConfig']) }
  messages.forEach((message, index) => {
    if (message['role'] !== (index % 2 === 0 ? 'user' : 'assistant'))
      refuseConverse('A conversation must alternate between user and assistant roles and start with a user message.')
    checkContent(asList(message['content']).map(asObject), seen, `messages.${index}`)
  })
  checkResults(messages)
  for (const block of asList(request['system']).map(asObject))
    if (!isGiven(block['cachePoint']) && asText(block['text']).trim() === '')
      refuseConverse('The text field in system is blank.')
  checkInference(asObject(request['inferenceConfig']))
  if (isGiven(request['toolConfig'])) checkTools(asObject(request['toolConfig']))
  const schema = asObject(asObject(asObject(request['outputConfig'])['textFormat'])['structure'])['jsonSchema']
  if (isGiven(schema) && typeof asObject(schema)['schema'] !== 'string')
    refuseConverse('jsonSchema.schema must be a string')
}

interface Seen {
  readonly calls: Set<string>
  readonly files: Set<string>
  readonly hasTools: boolean
}

function checkContent(blocks: readonly Fields[], seen: Seen, path: string): void {
  if (blocks.length === 0) refuseConverse(`The content field at ${path} is empty.`)
  for (const block of blocks) {
    const [type = '', ...others] = Object.keys(block)
    if (!BLOCKS.has(type) || others.length > 0) refuseConverse(`A block at ${path} must have one known member.`)
    if (type === 'text' && asText(block['text']).trim() === '') refuseConverse(`The text field at ${path} is blank.`)
    if (type === 'toolUse' || type === 'toolResult') {
      const member = asObject(block[type])
      const id = asText(member['toolUseId'])
      if (!TOOL_ID.test(id)) refuseConverse(`toolUseId at ${path} does not match the pattern`)
      if (!seen.hasTools)
        refuseConverse('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
      if (type === 'toolUse') seen.calls.add(id)
      else if (!seen.calls.has(id)) refuseConverse(`The toolResult at ${path} has no toolUse.`)
      for (const inner of asList(member['content']).map(asObject))
        if (!Object.keys(inner).every((name) => RESULT_BLOCKS.has(name)))
          refuseConverse(`A toolResult at ${path} is malformed.`)
    }
    if (type === 'image' || type === 'document') checkMedia(asObject(block[type]), type, seen, path)
  }
  if (blocks.some((block) => isGiven(block['document'])) && !blocks.some((block) => isGiven(block['text'])))
    refuseConverse(`A document at ${path} needs a text beside it.`)
}

function checkMedia(media: Fields, type: string, seen: Seen, path: string): void {
  const formats = type === 'image' ? 'png jpeg gif webp' : 'pdf csv doc docx xls xlsx html txt md'
  if (!names(formats).has(asText(media['format']))) refuseConverse(`The format at ${path} is unknown.`)
  if (asText(asObject(media['source'])['bytes']) === '') refuseConverse(`The source at ${path} has no bytes.`)
  if (type === 'image') return
  const name = asText(media['name'])
  if (!FILE_NAME.test(name)) refuseConverse(`The document name at ${path} has characters that are not allowed.`)
  if (seen.files.has(name)) refuseConverse('Document names must be unique.')
  seen.files.add(name)
}

/** Every call of a turn has its result in the next one. */
function checkResults(messages: readonly Fields[]): void {
  messages.forEach((message, index) => {
    const calls = idsOf(message, 'toolUse')
    const results = new Set(idsOf(messages[index + 1] ?? {}, 'toolResult'))
    if (calls.some((id) => !results.has(id)) && index + 1 < messages.length)
      refuseConverse('Expected toolResult blocks for the toolUse blocks of the turn before.')
  })
}

function idsOf(message: Fields, type: string): string[] {
  return asList(message['content'])
    .map((block) => asObject(asObject(block)[type])['toolUseId'])
    .filter((id) => typeof id === 'string')
}

function checkInference(config: Fields): void {
  for (const name of Object.keys(config))
    if (!names('maxTokens temperature topP stopSequences').has(name))
      refuseConverse(`Unknown field inferenceConfig.${name}`)
  for (const name of ['temperature', 'topP']) {
    const value = config[name]
    if (isGiven(value) && !(typeof value === 'number' && value >= 0 && value <= 1))
      refuseConverse(`${name} must be from 0 to 1`)
  }
  const { maxTokens } = config
  if (isGiven(maxTokens) && !(Number.isInteger(maxTokens) && Number(maxTokens) >= 1))
    refuseConverse('maxTokens must be at least 1')
}

function checkTools(config: Fields): void {
  const tools = asList(config['tools']).map(asObject)
  if (tools.length === 0) refuseConverse('toolConfig.tools must not be empty')
  for (const tool of tools)
    if (!isGiven(tool['cachePoint']) && !isGiven(asObject(asObject(tool['toolSpec'])['inputSchema'])['json']))
      refuseConverse('A tool must have a toolSpec with an inputSchema.')
  const choice = Object.keys(asObject(config['toolChoice']))
  if (choice.some((name) => !['auto', 'any', 'tool'].includes(name)))
    refuseConverse('toolChoice must be auto, any or tool')
}

function refuseConverse(message: string): never {
  refuseAws(400, 'ValidationException', message)
}

/** Writes a frame of `application/vnd.amazon.eventstream` with headers of text. Source: AWS, "Event stream encoding". */
export function eventFrame(headers: Readonly<Record<string, string>>, payload: string | Uint8Array): Buffer {
  const written = Object.entries(headers).flatMap(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return [Buffer.from([Buffer.byteLength(name)]), Buffer.from(name), Buffer.from([7]), length, Buffer.from(value)]
  })
  const head = Buffer.concat(written)
  const body = Buffer.from(payload)
  const total = 12 + head.length + body.length + 4
  const frame = Buffer.alloc(total)
  frame.writeUInt32BE(total, 0)
  frame.writeUInt32BE(head.length, 4)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  head.copy(frame, 12)
  body.copy(frame, 12 + head.length)
  frame.writeUInt32BE(crc32(frame.subarray(0, total - 4)), total - 4)
  return frame
}

/** An event of a stream, padded as the service pads it. */
export function eventOf(type: string, value: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }
  return eventFrame(headers, JSON.stringify({ ...value, p: 'abcdefghijklmnopqrstuvwxyz'.slice(0, type.length) }))
}

/** An exception inside a stream. */
export function exceptionOf(type: string, message: string): Buffer {
  const headers = { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' }
  return eventFrame(headers, JSON.stringify({ message }))
}

/** Amazon Bedrock in OpenAI's dialect, at the paths of both its services. */
const BEDROCK_CHAT = chatOperation(bedrockOperation, {
  post: /^\/bedrock(?:\/openai)?\/v1\/chat\/completions$/,
  headers: BEDROCK_HEADERS,
  refuse: refuseOpenai,
  dialect: { ...COMPATIBLE_DIALECT, showsReasoning: false },
  prepare(request) {
    checkModelId(asText(request['model']))
    return request
  },
})

/** Claude in Amazon Bedrock, by the Messages API: as at its own vendor, behind the service's access checks. */
export function bedrockMessages(): SandboxOperation {
  return messagesOperation(anthropicMessages(), 'messages')
}

/** The count of a Messages request's tokens there. */
const BEDROCK_COUNT_TOKENS = messagesOperation(ANTHROPIC_COUNT_TOKENS, 'messages/count_tokens')

function messagesOperation(own: SandboxOperation, path: string): SandboxOperation {
  return bedrockOperations(own.errors)({
    operation: own.operation,
    post: `/bedrock/anthropic/v1/${path}`,
    prompt: own.promptText,
    answer(call, context, request) {
      checkModelId(asText(request['model']))
      return own.answer(asAtTheVendor(call), context)
    },
  })
}

/** Returns the call for the stand-in of the vendor itself: access was checked, and its own id decides what the model accepts. */
function asAtTheVendor(call: SandboxCall): SandboxCall {
  const body = asObject(call.body)
  const model = asText(body['model']).replace(/^.*\banthropic\.|-v\d+(?::\d+)?$/g, '')
  const renamed = { ...body, model }
  const headers = { ...call.headers, 'x-api-key': 'checked-before' }
  return { ...call, headers, body: renamed, bytes: Buffer.from(JSON.stringify(renamed)) }
}

const MAX_COHERE_TEXTS = 96

/** Amazon Bedrock by InvokeModel: embeddings of Titan, Nova and Cohere, each in its own layout. */
const BEDROCK_EMBEDDINGS = bedrockOperation({
  operation: 'embeddings',
  post: /^\/bedrock\/model\/([^/]+)\/invoke$/,
  prompt: (request) => embeddingTexts(request).join('\n'),
  answer(_call, context, request, [path = '']) {
    const id = decodeURIComponent(path)
    checkModelId(id)
    const texts = embeddingTexts(request)
    if (texts.length === 0 || texts.includes('')) refuseEmbedding('#: a text is required')
    const count = context.usage({ count: embeddingTokens(texts) })?.count
    const vectors = (dimensions: unknown, usual: number): number[][] =>
      texts.map((text) => unitVector(text, asNumber(dimensions) ?? usual))
    if (/titan-embed/.test(id)) {
      const [embedding] = vectors(request['dimensions'], 1024)
      return jsonReply(200, BEDROCK_HEADERS, { embedding, inputTextTokenCount: count })
    }
    const counted = count === undefined ? [] : ['x-amzn-bedrock-input-token-count', String(count)]
    const headers = [...BEDROCK_HEADERS, ...counted]
    if (/cohere\.embed/.test(id)) {
      if (texts.length > MAX_COHERE_TEXTS) refuseEmbedding('#/texts: expected maximum item count: 96')
      if (!isGiven(request['input_type'])) refuseEmbedding('#: required key [input_type] not found')
      const isNewer = /embed-v4/.test(id)
      const float = vectors(request['output_dimension'], isNewer ? 1536 : 1024)
      return jsonReply(200, headers, { id: 'sandbox', texts, embeddings: isNewer ? { float } : float })
    }
    const [embedding] = vectors(asObject(request['singleEmbeddingParams'])['embeddingDimension'], 3072)
    return jsonReply(200, headers, { embeddings: [{ embeddingType: 'TEXT', embedding }] })
  },
})

function embeddingTexts(request: Fields): string[] {
  if (Array.isArray(request['texts'])) return asList(request['texts']).map(asText)
  const value = request['inputText'] ?? asObject(asObject(request['singleEmbeddingParams'])['text'])['value']
  return typeof value === 'string' ? [value] : []
}

function refuseEmbedding(fault: string): never {
  const message = `Malformed input request: ${fault}, please reformat your input and try again.`
  refuseAws(400, 'ValidationException', message)
}

/** Operations of Amazon Bedrock that store nothing. */
export const BEDROCK_OPERATIONS: readonly SandboxOperation[] = [
  BEDROCK_CHAT,
  BEDROCK_CONVERSE,
  BEDROCK_EMBEDDINGS,
  BEDROCK_COUNT_TOKENS,
]
