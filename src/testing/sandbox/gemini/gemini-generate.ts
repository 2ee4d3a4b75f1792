import { type ChatTurn, chatTurn, countTokens } from '../model/chat-turn.ts'
import { asObject, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  jsonReply,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { checkGeminiConfig, checkGeminiContents, readContentsPrompt, thoughtSignature } from './gemini-contents.ts'
import { checkGeminiKey, field, GEMINI_ERRORS, GEMINI_HEADERS, modelMethod, signsThoughts } from './gemini-errors.ts'
import { asksForPicture, generatedImage } from './gemini-pictures.ts'

const METHODS = ['generateContent', 'streamGenerateContent']

/** Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, the latter with `alt=sse` or without. */
export const GEMINI_GENERATE: SandboxOperation = {
  vendor: 'gemini',
  operation: 'chat',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && METHODS.includes(modelMethod(path)?.method ?? ''),
  promptText: (body) => readContentsPrompt(body).lastUserText,
  answer(call, context) {
    const { model = '', method } = modelMethod(call.path) ?? {}
    checkGeminiKey(call)
    const request = asObject(call.body)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    if (asksForPicture(request)) return pictureReply(call, generatedImage(call, model, context))
    const parts = contentParts(call, model, context)
    if (method === 'generateContent') return jsonReply(200, GEMINI_HEADERS, wholeContent(parts), 2)
    return new URLSearchParams(call.query).get('alt') === 'sse' ? sseReply(parts) : listReply(parts)
  },
}

function contentParts(call: SandboxCall, model: string, context: AnswerContext): ContentParts {
  const thinking = field(field(call.body, 'generationConfig'), 'thinkingConfig')
  return {
    model,
    turn: chatTurn(readContentsPrompt(call.body), context),
    context,
    showsThoughts: field(thinking, 'includeThoughts') === true,
  }
}

function pictureReply(call: SandboxCall, response: unknown): SandboxReply {
  if (modelMethod(call.path)?.method === 'generateContent') return jsonReply(200, GEMINI_HEADERS, response, 2)
  const event = `data: ${JSON.stringify(response)}\r\n\r\n`
  return streamReply(GEMINI_HEADERS, [event], event)
}

// Google's event streams end their lines with CR LF, and have no end mark.
function sseReply(parts: ContentParts): SandboxReply {
  const event = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\r\n\r\n`
  const reply = streamReply(GEMINI_HEADERS, contentChunks(parts).map(event), event(fillerChunk(parts)))
  return { ...reply, headers: ['content-type', 'text/event-stream', ...GEMINI_HEADERS] }
}

/** Without `alt=sse`, the stream is one growing JSON list. */
function listReply(parts: ContentParts): SandboxReply {
  const pieces = contentChunks(parts).map(
    (chunk, index) => `${index === 0 ? '[' : ',\r\n'}${JSON.stringify(chunk, null, 2)}`,
  )
  const headers = ['content-type', 'application/json; charset=UTF-8', ...GEMINI_HEADERS]
  const filler = `,\r\n${JSON.stringify(fillerChunk(parts))}`
  return { status: 200, headers, pieces: [...pieces, ']'], streamed: true, filler }
}

/** Gemini: `POST /v1beta/models/{model}:countTokens`, with `contents` or a whole `generateContentRequest`. */
export const GEMINI_COUNT_TOKENS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'count-tokens',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && modelMethod(path)?.method === 'countTokens',
  promptText: (body) => readContentsPrompt(requestOf(body)).lastUserText,
  answer(call) {
    checkGeminiKey(call)
    const request = requestOf(call.body)
    checkGeminiContents(request, modelMethod(call.path)?.model ?? '')
    const totalTokens = countTokens(readContentsPrompt(request).texts)
    const promptTokensDetails = [{ modality: 'TEXT', tokenCount: totalTokens }]
    return jsonReply(200, GEMINI_HEADERS, { totalTokens, promptTokensDetails }, 2)
  },
}

function requestOf(body: unknown): unknown {
  const inner = field(body, 'generateContentRequest')
  return isGiven(inner) ? inner : asObject(body)
}

type Json = Record<string, unknown>

/** Inputs of an answer. */
export interface ContentParts {
  readonly model: string
  readonly turn: ChatTurn
  readonly context: AnswerContext
  /** `includeThoughts` of the request. */
  readonly showsThoughts: boolean
}

/** Returns the whole answer. */
export function wholeContent(parts: ContentParts): Json {
  const { turn } = parts
  if (turn.ending === 'blocked') return blockedAnswer(parts)
  const thoughts = shownThoughts(parts).join('')
  const text = turn.words.join('')
  return answer(
    parts,
    [
      ...(thoughts === '' ? [] : [{ text: thoughts, thought: true }]),
      ...(text === '' ? [] : [{ text, ...textSignature(parts) }]),
      ...callParts(parts),
    ],
    finishReason(turn),
    usageOf(turn),
  )
}

/** Returns the chunks of a streamed answer, each a whole response object. The last one has the finish reason. */
export function contentChunks(parts: ContentParts): Json[] {
  const { turn } = parts
  if (turn.ending === 'blocked') return [blockedAnswer(parts)]
  const soFar = { promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }
  const pieces: Json[] = [
    ...shownThoughts(parts).map((text) => ({ text, thought: true })),
    ...turn.words.map((text) => ({ text })),
    ...callParts(parts),
  ]
  const last = answer(parts, [{ text: '', ...textSignature(parts) }], finishReason(turn), usageOf(turn))
  return [...pieces.map((piece) => answer(parts, [piece], undefined, soFar)), last]
}

/** Returns a chunk that an endless stream repeats. */
export function fillerChunk(parts: ContentParts): Json {
  return answer(parts, [{ text: ' more' }], undefined, { promptTokenCount: parts.turn.usage.prompt })
}

function answer(parts: ContentParts, contentParts: readonly Json[], finish: string | undefined, usage: Json): Json {
  // An empty answer has no parts at all.
  const content = contentParts.length === 0 ? { role: 'model' } : { parts: contentParts, role: 'model' }
  return {
    candidates: [{ content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }],
    usageMetadata: parts.context.usage(usage),
    modelVersion: parts.model,
    responseId: parts.context.id,
  }
}

function blockedAnswer({ model, turn, context }: ContentParts): Json {
  return {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
    usageMetadata: context.usage({ promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }),
    modelVersion: model,
    responseId: context.id,
  }
}

function shownThoughts({ turn, showsThoughts }: ContentParts): readonly string[] {
  return showsThoughts ? turn.reasoning : []
}

function textSignature({ model, turn, context }: ContentParts): Json {
  const isSigned = signsThoughts(model) && turn.reasoning.length > 0 && turn.toolCalls.length === 0
  return isSigned ? { thoughtSignature: thoughtSignature(context.id) } : {}
}

/** Returns the calls. Only the first of parallel ones is signed, and older models give no ids. */
function callParts({ model, turn, context }: ContentParts): Json[] {
  const signs = signsThoughts(model)
  return turn.toolCalls.map((call, index) => ({
    functionCall: {
      ...(signs ? { id: `${context.id.slice(0, 8)}${index}` } : {}),
      name: call.name,
      args: call.arguments,
    },
    ...(signs && index === 0 ? { thoughtSignature: thoughtSignature(context.id) } : {}),
  }))
}

function finishReason(turn: ChatTurn): string {
  return turn.ending === 'length' ? 'MAX_TOKENS' : 'STOP'
}

/** The candidates' count excludes thoughts, the prompt's includes cached tokens. Zero counts are omitted. */
function usageOf({ usage }: ChatTurn): Json {
  const candidates = usage.completion - usage.reasoning
  return {
    promptTokenCount: usage.prompt,
    ...(candidates > 0 ? { candidatesTokenCount: candidates } : {}),
    totalTokenCount: usage.prompt + usage.completion,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.prompt }],
    ...(usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
  }
}
