import { chatTurn } from '../model/chat-turn.ts'
import { asObject } from '../model/loose-json.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import {
  type AnswerContext,
  jsonReply,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { type ContentParts, contentChunks, fillerChunk, wholeContent } from './content-answer.ts'
import { checkGeminiConfig } from './gemini-config-checks.ts'
import { checkGeminiContents } from './gemini-content-checks.ts'
import { checkGeminiKey, GEMINI_ERRORS, GEMINI_HEADERS } from './gemini-errors.ts'
import { field, modelMethod } from './gemini-fields.ts'
import { asksForPicture, generatedImage } from './gemini-generate-image.ts'
import { readContentsPrompt } from './read-contents-prompt.ts'

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
    turn: chatTurn(readContentsPrompt(call.body), context.blocked),
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

/** Without `alt=sse` the stream is one JSON list that grows. */
function listReply(parts: ContentParts): SandboxReply {
  const pieces = contentChunks(parts).map(
    (chunk, index) => `${index === 0 ? '[' : ',\r\n'}${JSON.stringify(chunk, null, 2)}`,
  )
  const headers = ['content-type', 'application/json; charset=UTF-8', ...GEMINI_HEADERS]
  const filler = `,\r\n${JSON.stringify(fillerChunk(parts))}`
  return { status: 200, headers, pieces: [...pieces, ']'], streamed: true, filler }
}
