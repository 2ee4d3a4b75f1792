import * as z from 'zod'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model, noStream } from './arguments.ts'

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
    .optional()
    .describe('Text, or blocks: {type: "text", text} and {type: "image_url", image_url: {url}}.'),
})

/** Tool for `POST /v1/chat/completions`, with a whole answer. */
export const chatComplete = defineTool({
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
export const rerankDocuments = defineTool({
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
export const createEmbeddings = defineTool({
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
