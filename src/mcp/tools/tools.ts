import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { mediaType } from '../../wire/headers.ts'
import type { Form, FormPart } from '../../wire/write-form.ts'
import { defineTool, idempotencyKey, MAKES, model, noStream, type Tool } from '../tool.ts'
import { editImage, generateImage } from './image-tools.ts'
import { estimateCost, getBalance, listModels } from './lookup-tools.ts'
import { cancelVideo, getVideoTask, submitVideo, waitForVideo } from './video-tools.ts'

/** Tool for `POST /v1/audio/transcriptions`, with a whole answer. */
const transcribeAudio = defineTool({
  name: 'transcribe_audio',
  title: 'Transcribe a recording',
  description:
    'Transcribes a recording: as text, as subtitles, or with times or speakers if the model supports them. ' +
    'Charged by the second or by tokens.',
  annotations: MAKES,
  input: z.object({
    model,
    data: z.base64().min(4).describe('The recording in base64: flac, mp3, mp4, m4a, ogg, wav or webm.'),
    language: z.string().optional().describe('Language of the recording as ISO 639-1, such as en.'),
    prompt: z.string().optional().describe('Context, or words that the recording uses.'),
    response_format: z
      .enum(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'])
      .optional()
      .describe('Default json. Times and speakers if the model supports them. See gateway://catalog/{model}.'),
    timestamp_granularities: z
      .array(z.enum(['word', 'segment']))
      .optional()
      .describe('Requires verbose_json.'),
    stream: noStream,
    idempotency_key: idempotencyKey,
  }),
  output: z.object({
    model: z.string(),
    text: z.string().describe('The transcript, or the subtitles.'),
    answer: z.record(z.string(), z.unknown()).optional().describe('Whole answer, if the format is JSON.'),
  }),
  async answer({ data, idempotency_key: key, ...fields }, { gateway, call }) {
    const bytes = Buffer.from(data, 'base64')
    const form: Form = [...fieldParts(fields), filePart(bytes)]
    const answer = await call({ method: 'POST', path: '/v1/audio/transcriptions', form, idempotencyKey: key })
    const written = answer.body.toString('utf8')
    const id = gateway.catalog.find(fields.model)?.id ?? fields.model
    const isText = answer.headers.get('content-type')?.startsWith('text/') === true
    const parsed: unknown = isText ? { text: written } : parseVendorJson(written)
    if (!isJsonObject(parsed) || typeof parsed['text'] !== 'string') throw new GatewayError('upstream_invalid_response')
    const { text } = parsed
    return { structured: { model: id, text, ...(isText ? {} : { answer: parsed }) } }
  },
})

function fieldParts(fields: Readonly<Record<string, unknown>>): FormPart[] {
  return Object.entries(fields).flatMap(([name, value]): FormPart[] => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) return [{ kind: 'field', name, value: fieldText(value) }]
    return value.map((item) => ({ kind: 'field', name: `${name}[]`, value: fieldText(item) }))
  })
}

/** Objects are sent as JSON in a form. */
function fieldText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The file has no name: the gateway chooses one by its format. */
function filePart(bytes: Uint8Array): FormPart {
  const { byteLength } = bytes
  return {
    ...{ kind: 'file', name: 'file', filename: '', contentType: 'application/octet-stream' },
    ...{ chunks: [bytes], byteLength },
  } as const
}

/** Members of the request body, and the idempotency key. */
const speechArguments = z.looseObject({
  model,
  input: z.string().min(1).describe('The text to speak.'),
  voice: z.string().optional().describe('Name of a voice. Default Cherry.'),
  response_format: z.enum(SPEECH_FORMATS).optional().describe('Format of the audio. See gateway://catalog/{model}.'),
  instructions: z.string().optional().describe('Tone, speed and emotion in words, if the model supports them.'),
  stream_format: z.literal('audio').optional().describe('Tools return whole answers, so only audio is accepted.'),
  idempotency_key: idempotencyKey,
})

/** Tool for `POST /v1/audio/speech`, with a whole answer. */
const synthesizeSpeech = defineTool({
  name: 'synthesize_speech',
  title: 'Speak a text',
  description: 'Turns a text into speech and returns the audio. Charged by the character.',
  annotations: MAKES,
  input: speechArguments,
  output: z.object({
    model: z.string(),
    mime_type: z.string(),
    bytes: z.int().describe('Size of the audio, which is the audio block of the result.'),
    characters: z.int().describe('Number of characters of the input, which are charged.'),
  }),
  async answer({ idempotency_key: key, ...body }, { call }) {
    const answer = await call({ method: 'POST', path: '/v1/audio/speech', body, idempotencyKey: key })
    const type = mediaType(answer.headers.get('content-type'))
    if (!type.startsWith('audio/')) throw new GatewayError('upstream_invalid_response')
    return {
      structured: {
        model: body.model,
        mime_type: type,
        bytes: answer.body.byteLength,
        characters: [...body.input].length,
      },
      content: [{ type: 'audio', data: answer.body.toString('base64'), mimeType: type }],
    }
  },
})

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
    .optional()
    .describe('Text, or blocks: {type: "text", text} and {type: "image_url", image_url: {url}}.'),
})

/** Tool for `POST /v1/chat/completions`, with a whole answer. */
const chatComplete = defineTool({
  name: 'chat_complete',
  title: 'Chat with a model',
  description:
    'Sends a conversation to a chat model and returns its whole answer. Supports every field of the chat endpoint, see ' +
    'gateway://reference/chat. Charged by tokens.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    messages: z.array(message).min(1).describe('The turns of the conversation, oldest first.'),
    max_tokens: z.int().min(1).optional().describe('Maximum number of tokens of the answer.'),
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    stream: noStream,
    idempotency_key: idempotencyKey,
  }),
  // Answers of compatible servers are passed unchanged, and some omit members. Clients reject members that the schema does not allow.
  output: z.looseObject({
    id: z.string().nullish(),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int().optional(),
        message: z.looseObject({ role: z.string().optional() }),
        finish_reason: z.string().nullable(),
      }),
    ),
    usage: z
      .looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int().nullish() })
      .nullish(),
  }),
  async answer({ idempotency_key: key, ...body }, { json }) {
    return {
      structured: await json({ method: 'POST', path: '/v1/chat/completions', body, idempotencyKey: key }),
    }
  },
})

/** `POST /v1/rerank`. */
const rerankDocuments = defineTool({
  name: 'rerank',
  title: 'Rank documents',
  description:
    'Sorts documents by their relevance to a query. Supports every field of the endpoint, see gateway://reference/rerank. ' +
    'Charged by tokens, or by search units.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    query: z.string().min(1),
    documents: z
      .array(z.union([z.string().min(1), z.looseObject({})]))
      .min(1)
      .describe('Texts, or objects with a text.'),
    top_n: z.int().min(1).optional().describe('Maximum number of results. Default: all.'),
    return_documents: z.boolean().optional().describe('Whether to repeat the documents in the results. Default: no.'),
    idempotency_key: idempotencyKey,
  }),
  output: z.looseObject({
    object: z.literal('list'),
    model: z.string(),
    results: z.array(z.looseObject({ index: z.int(), relevance_score: z.number() })),
    usage: z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
  }),
  async answer({ idempotency_key: key, top_k: _otherShape, ...body }, { json }) {
    return { structured: await json({ method: 'POST', path: '/v1/rerank', body, idempotencyKey: key }) }
  },
})

/** `POST /v1/embeddings`. */
const createEmbeddings = defineTool({
  name: 'create_embeddings',
  title: 'Embed texts',
  description: 'Turns texts into vectors, in the order of the input. Charged by tokens.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).describe('A text, or a batch of texts.'),
    dimensions: z.int().min(1).optional().describe('Length of the vectors. Defaults to the length of the model.'),
    encoding_format: z.enum(['float', 'base64']).optional().describe('Numbers (default), or packed 32-bit floats.'),
    idempotency_key: idempotencyKey,
  }),
  output: z.looseObject({
    object: z.literal('list'),
    model: z.string(),
    data: z.array(
      z.looseObject({
        object: z.literal('embedding').optional(),
        index: z.int().optional(),
        embedding: z.union([z.array(z.number()), z.string()]),
      }),
    ),
    usage: z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
  }),
  async answer({ idempotency_key: key, ...body }, { json }) {
    return { structured: await json({ method: 'POST', path: '/v1/embeddings', body, idempotencyKey: key }) }
  },
})

/** Every tool of the server, in the order in which clients list them. */
export const TOOLS: readonly Tool[] = [
  chatComplete,
  generateImage,
  editImage,
  submitVideo,
  getVideoTask,
  waitForVideo,
  cancelVideo,
  createEmbeddings,
  rerankDocuments,
  synthesizeSpeech,
  transcribeAudio,
  listModels,
  estimateCost,
  getBalance,
]
