import * as z from 'zod'
import { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { mediaType } from '../../wire/headers.ts'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model } from './arguments.ts'

/** The members of the request body, and the key for repeating. */
const speechArguments = z.looseObject({
  model,
  input: z.string().min(1).describe('The text to speak.'),
  voice: z.string().optional().describe('Name of a voice. Default Cherry.'),
  response_format: z.enum(SPEECH_FORMATS).optional().describe('As the model has it, see gateway://catalog/{model}.'),
  instructions: z.string().optional().describe('Tone, speed and emotion in words, for models that take them.'),
  stream_format: z.literal('audio').optional().describe('Tools answer whole; nothing but audio is taken.'),
  idempotency_key: idempotencyKey,
})

/** `POST /v1/audio/speech`, answered whole. */
export const synthesizeSpeech = defineTool({
  name: 'synthesize_speech',
  title: 'Speak a text',
  description: 'Turns a text into speech and returns the sound. Charged by the character.',
  annotations: MAKES,
  input: speechArguments,
  output: z.object({
    model: z.string(),
    mime_type: z.string(),
    bytes: z.int().describe('Size of the sound, which is the audio block of the result.'),
    characters: z.int().describe('Characters of the input, by which it is charged.'),
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
