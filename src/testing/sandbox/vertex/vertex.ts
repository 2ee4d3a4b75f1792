import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from '../anthropic/anthropic.ts'
import { ANTHROPIC_ERRORS, refuseAnthropic } from '../anthropic/anthropic-request.ts'
import {
  asksForTranscript,
  GEMINI_COUNT_TOKENS,
  GEMINI_EMBEDDINGS,
  GEMINI_GENERATE,
  GEMINI_TRANSCRIPTIONS,
} from '../gemini/gemini.ts'
import { field, GEMINI_ERRORS, GEMINI_HEADERS, googleError, refuseGemini } from '../gemini/gemini-request.ts'
import { countTokens } from '../model/chat-turn.ts'
import { unitVector } from '../model/embedding.ts'
import { refuseOpenai } from '../openai/openai.ts'
import { COMPATIBLE_DIALECT, chatOperation } from '../openai-dialect/chat.ts'
import { asList, asNumber, asObject, asText, type Fields } from '../request-fields.ts'
import {
  credentialOf,
  eventText,
  jsonReply,
  type OperationRow,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type VendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

const PLACE = '^/v1(?:beta1)?/(?:projects/(?<project>[^/]+)/locations/(?<location>[^/]+)/)?'
const CALL = new RegExp(
  String.raw`${PLACE}(?:(?:publishers/(?<publisher>\w+)/models/|endpoints/(?=\d))(?<model>[^/:]+))?`,
)

/** Returns a pattern for a path below a location, or without a project and a location in express mode. */
function vertexPath(rest: string): RegExp {
  return new RegExp(`${PLACE.replaceAll(/\?<\w+>/g, '?:')}${rest}$`)
}

/** Returns a pattern for methods of Google's models, tuned ones included. Its groups are the model, encoded, and the method. */
function googleMethod(methods: string): RegExp {
  return vertexPath(String.raw`(?:publishers/google/models/|endpoints/(?=\d))([^/:]+):(${methods})`)
}

/** Locations of the stand-in in addition to the global one. Gemini's older models are in all, Claude's in these. */
const LOCATIONS = ['global', 'us', 'eu', 'us-central1', 'us-east5', 'europe-west1', 'europe-west4', 'asia-southeast1']

/** Prefix of tokens of the stand-in's token endpoint. Their expiry in Unix milliseconds follows. */
const TOKEN_PREFIX = 'ya29.sandbox-until-'

/**
 * Rejects what Google rejects before it reads the request: no credential, an expired token, a key instead of a token, a missing
 * project (`missing-…`), and a location without the model.
 */
function checkVertexCall(call: SandboxCall, nowMs: number, takesKeys: boolean): void {
  const isKey = call.headers['x-goog-api-key'] !== undefined
  const credential = credentialOf(call)
  const endMs = credential.startsWith(TOKEN_PREFIX) ? Number(credential.slice(TOKEN_PREFIX.length)) : undefined
  if (credential === '' || (isKey && !takesKeys) || (endMs !== undefined && !(endMs > nowMs)))
    refuseGemini('Request had invalid authentication credentials.', 401)
  const { project, location, publisher = 'google', model = '' } = CALL.exec(call.path)?.groups ?? {}
  if (project === undefined) {
    if (isKey) return
    refuseGemini('Express mode needs an API key.', 403)
  }
  if (project.startsWith('missing-')) {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'CONSUMER_INVALID' }]
    const message = `Permission denied on resource project ${project}.`
    const error = { code: 403, message, status: 'PERMISSION_DENIED', details }
    // Some of Google's servers wrap errors in a list.
    throw new RefusedCall(jsonReply(403, GEMINI_HEADERS, [{ error }], 2))
  }
  const name = `projects/${project}/locations/${location}/publishers/${publisher}/models/${model}`
  if (!LOCATIONS.includes(location ?? ''))
    refuseGemini(`Publisher Model \`${name}\` was not found or your project does not have access to it.`, 404)
}

/** Makes operations of Vertex AI. `takesKeys` says whether keys are accepted in addition to tokens. */
function vertexOperations(takesKeys: boolean, errors: VendorErrors = GEMINI_ERRORS) {
  return vendorOperations({
    vendor: 'vertex',
    errors,
    headers: GEMINI_HEADERS,
    indent: 2,
    access: (call, nowMs) => checkVertexCall(call, nowMs, takesKeys),
  })
}

const LIFETIME_SECONDS = 3600
/** How far a claim may lie in the past or the future of the server. */
const TOLERANCE_SECONDS = 300

/**
 * Google's token endpoint, `POST /token`, for the claims of service accounts and for refresh tokens. Tokens last an hour. A claim
 * dated by a wrong clock, and the refresh token `revoked`, are rejected.
 */
const GOOGLE_TOKENS = vendorOperations({ vendor: 'vertex', errors: GEMINI_ERRORS })({
  operation: 'token',
  post: '/token',
  needsJson: false,
  json({ bytes }, { nowMs }) {
    const form = new URLSearchParams(Buffer.from(bytes).toString('utf8'))
    if (form.get('grant_type') !== 'refresh_token') checkClaim(form.get('assertion') ?? '', nowMs)
    else if (form.get('refresh_token') === 'revoked') refuseGrant('Token has been expired or revoked.')
    const token = `${TOKEN_PREFIX}${nowMs + LIFETIME_SECONDS * 1000}`
    return { access_token: token, expires_in: LIFETIME_SECONDS - 1, token_type: 'Bearer' }
  },
})

function checkClaim(assertion: string, nowMs: number): void {
  const issuedAt = asNumber(claimsOf(assertion)['iat']) ?? 0
  const message =
    'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.'
  if (!(Math.abs(issuedAt - nowMs / 1000) <= TOLERANCE_SECONDS)) refuseGrant(message)
}

function refuseGrant(description: string): never {
  throw new RefusedCall(jsonReply(400, [], { error: 'invalid_grant', error_description: description }))
}

/** The claims of a signed text, unverified. */
function claimsOf(assertion: string): Fields {
  const [, payload = ''] = assertion.split('.')
  try {
    return asObject(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')))
  } catch {
    // Missing claims are rejected like those of a wrong time.
    return {}
  }
}

const tokenOperation = vertexOperations(false)
const keyOperation = vertexOperations(true)
const claudeOperation = vertexOperations(false, ANTHROPIC_ERRORS)

const VERSION = 'vertex-2023-10-16'
const BETAS =
  /^(?:claude-code|compact|computer-use|context-1m|context-management|dangerous-tool-use|interleaved-thinking|per-turn-control|thinking-binding-controls|thinking-display-updates|tool-search-tool|web-search)-\d{4}-?\d{2}-?\d{2}$/
const COUNT_BETAS = /^(?:claude-code|interleaved-thinking|context-management)-/
/** Fields of Anthropic's own API that the cloud lacks. */
const REFUSED_FIELDS = 'service_tier speed container inference_geo diagnostics mcp_servers fallbacks'.split(' ')

/** Vertex AI: `rawPredict` and `streamRawPredict` of Claude. Streams have an event of Google's own. */
export function vertexClaude(): SandboxOperation {
  const messages = anthropicMessages()
  return claudeOperation({
    operation: messages.operation,
    post: vertexPath('publishers/anthropic/models/(?!count-tokens:)([^/:]+):(rawPredict|streamRawPredict)'),
    prompt: messages.promptText,
    answer(call, context, body, [id = '', method]) {
      checkBody(call, BETAS)
      if (body['model'] !== undefined) refuseAnthropic('model: Extra inputs are not permitted')
      if ((method === 'streamRawPredict') !== (body['stream'] === true))
        refuseAnthropic('stream: must agree with the method')
      const reply = messages.answer(
        ownCall(call, { ...body, model: decodeURIComponent(id).replace('@', '-') }),
        context,
      )
      if (!reply.streamed) return reply
      const usage = { type: 'vertex_event', usage: { input_tokens: 9, output_tokens: 1 } }
      const [first = '', ...rest] = reply.pieces
      return { ...reply, pieces: [first, eventText(usage, 'vertex_event'), ...rest] }
    },
  })
}

/** Vertex AI: the count of Claude's tokens, by a model of that name. */
const VERTEX_CLAUDE_COUNT = claudeOperation({
  operation: ANTHROPIC_COUNT_TOKENS.operation,
  post: vertexPath('publishers/anthropic/models/count-tokens:(?:rawPredict|streamRawPredict)'),
  prompt: ANTHROPIC_COUNT_TOKENS.promptText,
  answer(call, context, body) {
    checkBody(call, COUNT_BETAS)
    return ANTHROPIC_COUNT_TOKENS.answer(ownCall(call, body), context)
  },
})

function checkBody({ body, headers, bytes }: SandboxCall, betas: RegExp): void {
  const request = asObject(body)
  if (request['anthropic_version'] === undefined) refuseAnthropic('anthropic_version: Field required')
  if (request['anthropic_version'] !== VERSION) refuseAnthropic(`anthropic_version: Input should be '${VERSION}'`)
  for (const name of REFUSED_FIELDS)
    if (request[name] !== undefined) refuseAnthropic(`${name}: Extra inputs are not permitted`)
  for (const beta of (headers['anthropic-beta'] ?? '').split(',').map((part) => part.trim()))
    if (beta !== '' && !betas.test(beta))
      refuseAnthropic(`Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`)
  if (/"cache_control":\{[^}]*"scope"/.test(Buffer.from(bytes).toString('utf8')))
    refuseAnthropic('system.0.cache_control.ephemeral.scope: Extra inputs are not permitted')
  for (const [index, message] of asList(request['messages']).entries())
    for (const block of asList(asObject(message)['content']))
      if (asObject(asObject(block)['source'])['type'] === 'url')
        refuseAnthropic(`messages.${index}.content: URL sources are not supported`)
}

/** The call as Anthropic's own API gets it. */
function ownCall(call: SandboxCall, { anthropic_version: _, ...body }: Fields): SandboxCall {
  return { ...call, body, headers: { ...call.headers, 'anthropic-version': '2023-06-01' } }
}

/** Vertex AI: chat and images of Gemini. It rejects ids of function calls. */
const VERTEX_GENERATE = atVertex(GEMINI_GENERATE, 'generateContent|streamGenerateContent', refuseCallIds)

/** Vertex AI: a recording with the instruction to transcribe it. Before {@link VERTEX_GENERATE} in the list. */
const VERTEX_TRANSCRIPTIONS = atVertex(GEMINI_TRANSCRIPTIONS, 'generateContent', () => undefined, {
  when: ({ body }) => asksForTranscript(body),
})

/** Vertex AI: `countTokens`, whose body is the counted request. */
const VERTEX_COUNT_TOKENS = atVertex(GEMINI_COUNT_TOKENS, 'countTokens', (request) => {
  if (request['generateContentRequest'] !== undefined) refuseUnknown('generateContentRequest', '')
  refuseCallIds(request)
})

/** Vertex AI: `embedContent`, which only models from `gemini-embedding-2` on have. */
const VERTEX_EMBED_CONTENT = atVertex(GEMINI_EMBEDDINGS, 'embedContent', (_request, model) => {
  if (!hasEmbedContent(model)) refuseMethod()
})

/** Creates the stand-in of Gemini's own API, at the paths and with the rules of the cloud. */
function atVertex(
  own: SandboxOperation,
  methods: string,
  check: (request: Fields, model: string) => void,
  others: Pick<OperationRow, 'when'> = {},
): SandboxOperation {
  return keyOperation({
    operation: own.operation,
    post: googleMethod(methods),
    ...others,
    prompt: own.promptText,
    answer(call, context, request, [model = '', method]) {
      check(request, decodeURIComponent(model))
      const headers = { ...call.headers, 'x-goog-api-key': 'checked' }
      return own.answer({ ...call, path: `/v1/models/${model}:${method}`, headers }, context)
    },
  })
}

function refuseCallIds(request: Fields): void {
  for (const [index, content] of asList(request['contents']).entries())
    for (const [place, part] of asList(asObject(content)['parts']).entries())
      for (const [name, written] of Object.entries(CALL_MEMBERS))
        if (field(asObject(part)[name], 'id') !== undefined)
          refuseUnknown('id', `contents[${index}].parts[${place}].${written}`)
}

const CALL_MEMBERS = { functionCall: 'function_call', functionResponse: 'function_response' }

function refuseUnknown(name: string, place: string): never {
  const at = place === '' ? '' : ` at '${place}'`
  return refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
}

function refuseMethod(): never {
  throw new RefusedCall(googleError(400, 'FAILED_PRECONDITION', 'The model does not support this method.', []))
}

function hasEmbedContent(model: string): boolean {
  return /^gemini-embedding-[2-9]/.test(model)
}

const MAX_TEXTS = 5

/** Vertex AI: `predict` of embedding models, with one text per call for Gemini's and five for others. */
const VERTEX_PREDICT = keyOperation({
  operation: 'embeddings',
  post: googleMethod('predict'),
  prompt: ({ instances }) => asList(instances).map(textOf).join('\n'),
  json(_call, context, { instances: given, parameters }, [id = '']) {
    const model = decodeURIComponent(id)
    if (hasEmbedContent(model)) refuseMethod()
    const isGemini = model.startsWith('gemini-')
    const instances = asList(given)
    const most = isGemini ? 1 : MAX_TEXTS
    if (instances.length === 0 || instances.length > most)
      refuseGemini(`${instances.length} instance(s) is not allowed; ${model} takes up to ${most}.`)
    const native = isGemini ? 3072 : 768
    const dimensions = asNumber(field(parameters, 'outputDimensionality')) ?? native
    if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > native)
      refuseGemini(`Unable to submit request because outputDimensionality must be between 1 and ${native}.`)
    const predictions = instances.map(textOf).map((text) => {
      if (text === '') refuseGemini('The text content is empty.')
      const statistics = context.usage({ truncated: false, token_count: countTokens([text]) })
      const values = unitVector(text, dimensions, native, model !== 'gemini-embedding-001')
      return { embeddings: { statistics, values } }
    })
    return { predictions }
  },
})

function textOf(instance: unknown): string {
  return asText(asObject(instance)['content'])
}

/** Vertex AI: open models by the OpenAI surface. Errors are Google's. */
const VERTEX_OPEN_CHAT = chatOperation(tokenOperation, {
  post: vertexPath('endpoints/openapi/chat/completions'),
  refuse: refuseOpenai,
  dialect: { ...COMPATIBLE_DIALECT, usageDetails: () => ({}) },
  bounds: () => ({ reasoning: false }),
})

/** Operations of Vertex AI that store nothing. A transcription is a chat, and comes first. */
export const VERTEX_OPERATIONS: readonly SandboxOperation[] = [
  VERTEX_TRANSCRIPTIONS,
  VERTEX_GENERATE,
  VERTEX_COUNT_TOKENS,
  VERTEX_EMBED_CONTENT,
  VERTEX_PREDICT,
  VERTEX_CLAUDE_COUNT,
  VERTEX_OPEN_CHAT,
  GOOGLE_TOKENS,
]
