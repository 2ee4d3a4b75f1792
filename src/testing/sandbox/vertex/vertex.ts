import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from '../anthropic/anthropic-messages.ts'
import { refuseAnthropic } from '../anthropic/anthropic-request.ts'
import { asksForTranscript, GEMINI_EMBEDDINGS, GEMINI_TRANSCRIPTIONS } from '../gemini/gemini-embeddings.ts'
import { field, GEMINI_ERRORS, GEMINI_HEADERS, refuseGemini } from '../gemini/gemini-errors.ts'
import { GEMINI_COUNT_TOKENS, GEMINI_GENERATE } from '../gemini/gemini-generate.ts'
import { chatTurn, countTokens } from '../model/chat-turn.ts'
import { unitVector } from '../model/embedding.ts'
import { openaiInvalid } from '../openai/openai-models.ts'
import {
  type ChatDialect,
  COMPATIBLE_DIALECT,
  chatAnswer,
  checkChatRequest,
  readChatPrompt,
  tokenLimit,
} from '../openai-dialect/chat.ts'
import { asList, asNumber, asObject, asText } from '../request-fields.ts'
import {
  type AnswerContext,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'
import { checkVertexCall, isOpenChat, vertexPath } from './vertex-call.ts'

const VERSION = 'vertex-2023-10-16'
const COUNTER = 'count-tokens'
const BETAS =
  /^(?:claude-code|compact|computer-use|context-1m|context-management|dangerous-tool-use|interleaved-thinking|per-turn-control|thinking-binding-controls|thinking-display-updates|tool-search-tool|web-search)-\d{4}-?\d{2}-?\d{2}$/
const COUNT_BETAS = /^(?:claude-code|interleaved-thinking|context-management)-/
/** Fields of Anthropic's own API that the cloud lacks. */
const REFUSED_FIELDS = [
  'service_tier',
  'speed',
  'container',
  'inference_geo',
  'diagnostics',
  'mcp_servers',
  'fallbacks',
]

/** Vertex AI: `rawPredict` and `streamRawPredict` of Claude. Streams have an event of Google's own. */
export function vertexClaude(): SandboxOperation {
  const messages = anthropicMessages()
  return {
    ...messages,
    vendor: 'vertex',
    matches: ({ method, path }) => method === 'POST' && isClaude(path) && vertexPath(path)?.model !== COUNTER,
    answer(call, context) {
      checkVertexCall(call, context.nowMs, { takesKeys: false })
      const { model = '', method } = vertexPath(call.path) ?? {}
      const body = asObject(call.body)
      checkBody(call, BETAS)
      if (body['model'] !== undefined) refuseAnthropic('model: Extra inputs are not permitted')
      if ((method === 'streamRawPredict') !== (body['stream'] === true))
        refuseAnthropic('stream: must agree with the method')
      const reply = messages.answer(ownCall(call, { ...body, model: model.replace('@', '-') }), context)
      if (!reply.streamed) return reply
      const usage = { type: 'vertex_event', usage: { input_tokens: 9, output_tokens: 1 } }
      const [first = '', ...rest] = reply.pieces
      return { ...reply, pieces: [first, `event: vertex_event\ndata: ${JSON.stringify(usage)}\n\n`, ...rest] }
    },
  }
}

/** Vertex AI: the count of Claude's tokens, by a model of that name. */
export const VERTEX_CLAUDE_COUNT: SandboxOperation = {
  ...ANTHROPIC_COUNT_TOKENS,
  vendor: 'vertex',
  matches: ({ method, path }) => method === 'POST' && isClaude(path) && vertexPath(path)?.model === COUNTER,
  answer(call, context) {
    checkVertexCall(call, context.nowMs, { takesKeys: false })
    checkBody(call, COUNT_BETAS)
    return ANTHROPIC_COUNT_TOKENS.answer(ownCall(call, asObject(call.body)), context)
  },
}

function isClaude(path: string): boolean {
  const named = vertexPath(path)
  return named?.publisher === 'anthropic' && /^(?:streamR|r)awPredict$/.test(named.method)
}

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
function ownCall(call: SandboxCall, { anthropic_version: _, ...body }: Record<string, unknown>): SandboxCall {
  return { ...call, body, headers: { ...call.headers, 'anthropic-version': '2023-06-01' } }
}

/** Vertex AI: chat and images of Gemini. It rejects ids of function calls. */
export const VERTEX_GENERATE = atVertex(GEMINI_GENERATE, ['generateContent', 'streamGenerateContent'], refuseCallIds)

const TRANSCRIPTIONS = atVertex(GEMINI_TRANSCRIPTIONS, ['generateContent'], () => undefined)

/** Vertex AI: a recording with the instruction to transcribe it. Before {@link VERTEX_GENERATE} in the list. */
export const VERTEX_TRANSCRIPTIONS: SandboxOperation = {
  ...TRANSCRIPTIONS,
  matches: (call) => TRANSCRIPTIONS.matches(call) && asksForTranscript(call.body),
}

/** Vertex AI: `countTokens`, whose body is the counted request. */
export const VERTEX_COUNT_TOKENS = atVertex(GEMINI_COUNT_TOKENS, ['countTokens'], ({ body }) => {
  if (asObject(body)['generateContentRequest'] !== undefined) refuseUnknown('generateContentRequest', '')
  refuseCallIds({ body })
})

/** Vertex AI: `embedContent`, which only models from `gemini-embedding-2` on have. */
export const VERTEX_EMBED_CONTENT = atVertex(GEMINI_EMBEDDINGS, ['embedContent'], ({ path }) => {
  if (!hasEmbedContent(vertexPath(path)?.model ?? '')) refuseMethod()
})

/** Vertex AI: `predict` of embedding models, with one text per call for Gemini's and five for others. */
export const VERTEX_PREDICT: SandboxOperation = {
  vendor: 'vertex',
  operation: 'embeddings',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && isGoogles(path, ['predict']),
  promptText: (body) => instancesOf(body).map(textOf).join('\n'),
  answer(call, context) {
    checkVertexCall(call, context.nowMs, { takesKeys: true })
    return predictions(call, vertexPath(call.path)?.model ?? '', context)
  },
}

/** Creates the stand-in of Gemini's own API, at the paths and with the rules of the cloud. */
function atVertex(
  operation: SandboxOperation,
  methods: readonly string[],
  check: (call: Pick<SandboxCall, 'body' | 'path'>) => void,
): SandboxOperation {
  return {
    ...operation,
    vendor: 'vertex',
    matches: ({ method, path }) => method === 'POST' && isGoogles(path, methods),
    answer(call, context) {
      checkVertexCall(call, context.nowMs, { takesKeys: true })
      check(call)
      const { model = '', method = '' } = vertexPath(call.path) ?? {}
      const path = `/v1/models/${encodeURIComponent(model)}:${method}`
      return operation.answer({ ...call, path, headers: { ...call.headers, 'x-goog-api-key': 'checked' } }, context)
    },
  }
}

function isGoogles(path: string, methods: readonly string[]): boolean {
  const named = vertexPath(path)
  return named?.publisher === 'google' && methods.includes(named.method)
}

function refuseCallIds({ body }: Pick<SandboxCall, 'body'>): void {
  for (const [index, content] of asList(asObject(body)['contents']).entries()) {
    for (const [place, part] of asList(asObject(content)['parts']).entries()) {
      for (const name of ['functionCall', 'functionResponse'])
        if (field(asObject(part)[name], 'id') !== undefined)
          refuseUnknown(
            'id',
            `contents[${index}].parts[${place}].${name === 'functionCall' ? 'function_call' : 'function_response'}`,
          )
    }
  }
}

function refuseUnknown(name: string, place: string): never {
  const at = place === '' ? '' : ` at '${place}'`
  refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
}

function refuseMethod(): never {
  const error = { code: 400, message: 'The model does not support this method.', status: 'FAILED_PRECONDITION' }
  throw new RefusedCall(jsonReply(400, GEMINI_HEADERS, { error }, 2))
}

function hasEmbedContent(model: string): boolean {
  return /^gemini-embedding-[2-9]/.test(model)
}

const MAX_TEXTS = 5

function predictions(call: SandboxCall, model: string, context: AnswerContext): SandboxReply {
  if (hasEmbedContent(model)) refuseMethod()
  const isGemini = model.startsWith('gemini-')
  const instances = instancesOf(call.body)
  const most = isGemini ? 1 : MAX_TEXTS
  if (instances.length === 0 || instances.length > most)
    refuseGemini(`${instances.length} instance(s) is not allowed; ${model} takes up to ${most}.`)
  const native = isGemini ? 3072 : 768
  const dimensions = asNumber(field(asObject(call.body)['parameters'], 'outputDimensionality')) ?? native
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > native)
    refuseGemini(`Unable to submit request because outputDimensionality must be between 1 and ${native}.`)
  const answers = instances.map((instance) => {
    const text = textOf(instance)
    if (text === '') refuseGemini('The text content is empty.')
    const statistics = context.usage({ truncated: false, token_count: countTokens([text]) })
    return {
      embeddings: { statistics, values: unitVector(text, dimensions, native, model !== 'gemini-embedding-001') },
    }
  })
  return jsonReply(200, GEMINI_HEADERS, { predictions: answers }, 2)
}

function instancesOf(body: unknown): readonly unknown[] {
  return asList(asObject(body)['instances'])
}

function textOf(instance: unknown): string {
  return asText(asObject(instance)['content'])
}

const DIALECT: ChatDialect = {
  ...COMPATIBLE_DIALECT,
  usage: ({ prompt, completion }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  }),
}

/** Vertex AI: open models by the OpenAI surface. Errors are Google's. */
export const VERTEX_OPEN_CHAT: SandboxOperation = {
  vendor: 'vertex',
  operation: 'chat',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && isOpenChat(path),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkVertexCall(call, context.nowMs, { takesKeys: false })
    checkChatRequest(call.body, openaiInvalid)
    const prompt = { ...readChatPrompt(call.body), reasoning: false, maxTokens: tokenLimit(call.body) }
    const turn = chatTurn(prompt, context)
    return chatAnswer(call.body, turn, context, DIALECT, [])
  },
}
