import { type ChatTurn, chatTurn, countTokens } from '../model/chat-turn.ts'
import { asObject, type Fields, isGiven } from '../request-fields.ts'
import { type AnswerContext, fileReply, jsonReply, streamReply } from '../sandbox-operation.ts'
import { checkGeminiConfig, checkGeminiContents, readContentsPrompt, thoughtSignature } from './gemini-contents.ts'
import { field, GEMINI_HEADERS, geminiOperation, googleEvent, methodPath, signsThoughts } from './gemini-errors.ts'
import { asksForPicture, generatedImage } from './gemini-pictures.ts'

/** Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, the latter with `alt=sse` or without. */
export const GEMINI_GENERATE = geminiOperation({
  operation: 'chat',
  post: methodPath('generateContent|streamGenerateContent'),
  prompt: (request) => readContentsPrompt(request).lastUserText,
  answer(call, context, request, [id = '', method]) {
    const model = decodeURIComponent(id)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    const isWhole = method === 'generateContent'
    if (asksForPicture(request)) {
      const response = generatedImage(request, model, context)
      if (isWhole) return jsonReply(200, GEMINI_HEADERS, response, 2)
      return streamReply(GEMINI_HEADERS, [googleEvent(response)], googleEvent(response))
    }
    const thinking = field(field(request, 'generationConfig'), 'thinkingConfig')
    const turn = chatTurn(readContentsPrompt(request), context)
    const parts = { model, turn, context, showsThoughts: field(thinking, 'includeThoughts') === true }
    if (isWhole) return jsonReply(200, GEMINI_HEADERS, wholeContent(parts), 2)
    // Google's event streams have no end mark.
    const chunks = contentChunks(parts)
    const filler = answer(parts, [{ text: ' more' }], undefined, { promptTokenCount: turn.usage.prompt })
    if (new URLSearchParams(call.query).get('alt') === 'sse') {
      const reply = streamReply([], chunks.map(googleEvent), googleEvent(filler))
      return { ...reply, headers: ['content-type', 'text/event-stream', ...GEMINI_HEADERS] }
    }
    // Without `alt=sse`, the stream is one growing JSON list.
    const pieces = chunks.map((chunk, index) => `${index === 0 ? '[' : ',\r\n'}${JSON.stringify(chunk, null, 2)}`)
    const list = fileReply('application/json; charset=UTF-8', '', GEMINI_HEADERS)
    return { ...list, pieces: [...pieces, ']'], streamed: true, filler: `,\r\n${JSON.stringify(filler)}` }
  },
})

/** Gemini: `POST /v1beta/models/{model}:countTokens`, with `contents` or a whole `generateContentRequest`. */
export const GEMINI_COUNT_TOKENS = geminiOperation({
  operation: 'count-tokens',
  post: methodPath('countTokens'),
  prompt: (request) => readContentsPrompt(countedRequest(request)).lastUserText,
  json(_call, _context, request, [id = '']) {
    const counted = countedRequest(request)
    checkGeminiContents(counted, decodeURIComponent(id))
    const totalTokens = countTokens(readContentsPrompt(counted).texts)
    return { totalTokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }] }
  },
})

function countedRequest(request: Fields): Fields {
  const inner = field(request, 'generateContentRequest')
  return isGiven(inner) ? asObject(inner) : request
}

/** Inputs of an answer. */
interface ContentParts {
  readonly model: string
  readonly turn: ChatTurn
  readonly context: AnswerContext
  /** `includeThoughts` of the request. */
  readonly showsThoughts: boolean
}

/** Returns the whole answer. */
function wholeContent(parts: ContentParts): Fields {
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
function contentChunks(parts: ContentParts): Fields[] {
  const { turn } = parts
  if (turn.ending === 'blocked') return [blockedAnswer(parts)]
  const soFar = { promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }
  const pieces: Fields[] = [
    ...shownThoughts(parts).map((text) => ({ text, thought: true })),
    ...turn.words.map((text) => ({ text })),
    ...callParts(parts),
  ]
  const last = answer(parts, [{ text: '', ...textSignature(parts) }], finishReason(turn), usageOf(turn))
  return [...pieces.map((piece) => answer(parts, [piece], undefined, soFar)), last]
}

function answer(
  parts: ContentParts,
  contentParts: readonly Fields[],
  finish: string | undefined,
  usage: Fields,
): Fields {
  // An empty answer has no parts at all.
  const content = contentParts.length === 0 ? { role: 'model' } : { parts: contentParts, role: 'model' }
  return {
    candidates: [{ content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }],
    usageMetadata: parts.context.usage(usage),
    modelVersion: parts.model,
    responseId: parts.context.id,
  }
}

function blockedAnswer({ model, turn, context }: ContentParts): Fields {
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

function textSignature({ model, turn, context }: ContentParts): Fields {
  const isSigned = signsThoughts(model) && turn.reasoning.length > 0 && turn.toolCalls.length === 0
  return isSigned ? { thoughtSignature: thoughtSignature(context.id) } : {}
}

/** Returns the calls. Only the first of parallel ones is signed, and older models give no ids. */
function callParts({ model, turn, context }: ContentParts): Fields[] {
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
function usageOf({ usage }: ChatTurn): Fields {
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
