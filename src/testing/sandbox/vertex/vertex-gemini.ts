import { GEMINI_EMBEDDINGS } from '../gemini/gemini-embeddings.ts'
import { field, GEMINI_ERRORS, GEMINI_HEADERS, refuseGemini } from '../gemini/gemini-errors.ts'
import { GEMINI_COUNT_TOKENS, GEMINI_GENERATE } from '../gemini/gemini-generate.ts'
import { asksForTranscript, GEMINI_TRANSCRIPTIONS } from '../gemini/gemini-transcriptions.ts'
import { countTokens } from '../model/chat-turn.ts'
import { unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText } from '../request-fields.ts'
import {
  type AnswerContext,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'
import { checkVertexCall, vertexPath } from './vertex-call.ts'

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
