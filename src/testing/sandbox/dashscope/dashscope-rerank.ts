import { Buffer } from 'node:buffer'
import { heardRecording, rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import { asList, asObject, asText, type Fields } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import {
  DASHSCOPE_ERRORS,
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
  dashscopeInvalid,
  refuseNative,
} from './dashscope-errors.ts'

const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const NATIVE_MAX_TOKENS = 30_000
const MAX_PICTURES = 40
const PICTURE_TOKENS = 250

/** DashScope: `POST /compatible-api/v1/reranks`, for `qwen3-rerank` (Model Studio, text rerank). */
export const DASHSCOPE_RERANK: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'rerank',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/compatible-api/v1/reranks',
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    const request = asObject(call.body)
    const { query, texts } = checked(request, MAX_TOKENS, (message) => {
      throw new RefusedCall(dashscopeInvalid(message))
    })
    return jsonReply(200, DASHSCOPE_HEADERS, {
      object: 'list',
      results: ranking(query, texts, request['top_n'], false),
      model: asText(request['model']),
      id: DASHSCOPE_REQUEST_ID,
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
    })
  },
}

/** DashScope: `POST /api/v1/services/rerank/text-rerank/text-rerank`, the native API of the older models. */
export const DASHSCOPE_NATIVE_RERANK: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'rerank',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/api/v1/services/rerank/text-rerank/text-rerank',
  promptText: (body) => rankingPromptText(asObject(asObject(body)['input'])),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
    const request = asObject(call.body)
    const parameters = asObject(request['parameters'])
    const input = asObject(request['input'])
    const isMultimodal = asText(request['model']).startsWith('qwen3-vl-rerank')
    const { texts: documents, pictures } = isMultimodal
      ? withoutPictures(input)
      : { texts: input['documents'], pictures: 0 }
    if (pictures > MAX_PICTURES) refuseNative(`at most ${MAX_PICTURES} images are allowed`)
    const maxTokens = isMultimodal ? MAX_TOKENS : NATIVE_MAX_TOKENS
    const { query, texts } = checked({ ...input, documents }, maxTokens, refuseNative)
    const imageTokens = pictures * PICTURE_TOKENS
    return jsonReply(200, DASHSCOPE_HEADERS, {
      output: { results: ranking(query, texts, parameters['top_n'], parameters['return_documents'] === true) },
      usage: context.usage({
        total_tokens: rankingTokens(query, texts) + imageTokens,
        ...(isMultimodal ? { image_tokens: imageTokens } : {}),
      }),
      request_id: DASHSCOPE_REQUEST_ID,
    })
  },
}

/** Converts multimodal documents to texts. An image is ranked by its address, or not at all if given as data. */
function withoutPictures(input: Fields): { readonly texts: unknown; readonly pictures: number } {
  let pictures = 0
  const texts = asList(input['documents']).map((document) => {
    if (typeof document === 'string') return document
    const { text, image, ...others } = asObject(document)
    if (Object.keys(others).length > 0 || (text === undefined) === (image === undefined)) return undefined
    if (image === undefined) return text
    pictures += 1
    return asText(image).replace(/^data:.*/s, 'data')
  })
  return { texts, pictures }
}

function checked(
  input: Fields,
  maxTokens: number,
  refuse: (message: string) => never,
): { readonly query: string; readonly texts: readonly string[] } {
  const query = asText(input['query'])
  const texts = rankedTexts(input['documents'])
  if (query === '' || texts === undefined) return refuse('query and documents must not be empty')
  if (texts.length > MAX_DOCUMENTS) return refuse(`at most ${MAX_DOCUMENTS} documents are allowed`)
  if (rankingTokens(query, texts) > maxTokens) return refuse(`at most ${maxTokens} tokens are allowed`)
  return { query, texts }
}

const PATH = '/compatible-mode/v1/chat/completions'

/** DashScope: Qwen-ASR by `POST /compatible-mode/v1/chat/completions`. It reports the seconds of the recording. */
export const DASHSCOPE_TRANSCRIPTIONS: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'transcriptions',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && path === PATH && /-asr-/.test(asText(asObject(body)['model'])),
  promptText: (body) => asText(asObject(asList(turnOf(body, 'system')['content'])[0])['text']),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    const content = asList(turnOf(call.body, 'user')['content']).map(asObject)
    const sound = asObject(content.find(({ type }) => type === 'input_audio')?.['input_audio'])
    const match = /^data:audio\/[\w.-]+;base64,([A-Za-z0-9+/]+=*)$/.exec(asText(sound['data']))
    const heard = match && heardRecording(Buffer.from(match[1] ?? '', 'base64'), context.script)
    if (!heard) throw new RefusedCall(dashscopeInvalid('The audio cannot be decoded.', null))
    const message = {
      role: 'assistant',
      content: heard.text,
      annotations: [{ type: 'audio_info', language: 'en', emotion: 'neutral' }],
    }
    return jsonReply(200, DASHSCOPE_HEADERS, {
      id: `chatcmpl-${context.id}`,
      object: 'chat.completion',
      created: Math.floor(context.nowMs / 1000),
      model: asText(asObject(call.body)['model']),
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: context.usage({ seconds: heard.seconds, prompt_tokens: 42, completion_tokens: heard.tokens }),
    })
  },
}

function turnOf(body: unknown, role: string): Readonly<Record<string, unknown>> {
  return asObject(
    asList(asObject(body)['messages'])
      .map(asObject)
      .find((turn) => turn['role'] === role),
  )
}
