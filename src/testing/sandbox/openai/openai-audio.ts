import { Buffer } from 'node:buffer'
import { sseData } from '../../../wire/sse.ts'
import { drawSound, wavFile } from '../files/stored-files.ts'
import { type HeardRecording, heardRecording } from '../model/embedding.ts'
import { type FormPart, formParts } from '../openai-dialect/form-parts.ts'
import { asObject, asText, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  fileReply,
  type IncomingCall,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid, refuseRepeatedParts } from './openai-models.ts'

const MODELS: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const VOICES = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'.split(' ')
const MAX_CHARACTERS = 4096

/** Media types that OpenAI answers with, and the first bytes of these files. */
const FILES: Readonly<Record<string, { readonly type: string; readonly mark: Buffer }>> = {
  opus: { type: 'audio/opus', mark: Buffer.from('OggS', 'latin1') },
  aac: { type: 'audio/aac', mark: Buffer.from([0xff, 0xf1, 0x50, 0x80]) },
  flac: { type: 'audio/flac', mark: Buffer.from('fLaC', 'latin1') },
}
const SPEECH_FORMATS = ['pcm', 'wav', ...Object.keys(FILES)]

/**
 * OpenAI: `POST /v1/audio/speech`. The sound is a tone for each character. `opus`, `aac` and `flac` are
 * samples after the first bytes of such a file, which no player reads.
 */
export const OPENAI_SPEECH: SandboxOperation = {
  vendor: 'openai',
  operation: 'speech',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/audio/speech',
  promptText: (body) => asText(asObject(body)['input']),
  answer(call) {
    checkBearer(call, OPENAI_ERRORS)
    const { model, input, voice, response_format: format, instructions } = asObject(call.body)
    if (!MODELS.includes(asText(model))) throw new RefusedCall(OPENAI_ERRORS.status(404))
    const text = asText(input)
    if (text === '') refuse("Missing required parameter: 'input'.", 'input')
    if (text.length > MAX_CHARACTERS) refuse(`String should have at most ${MAX_CHARACTERS} characters`, 'input')
    if (!VOICES.includes(asText(voice))) refuse(`Input should be one of ${VOICES.join(', ')}`, 'voice')
    if (isGiven(instructions) && asText(model).startsWith('tts-1'))
      refuse("'instructions' is not supported by this model.", 'instructions')
    if (format === 'pcm') return fileReply('audio/pcm', drawSound(text), OPENAI_HEADERS)
    if (format === 'wav') return fileReply('audio/wav', wavFile(drawSound(text)), OPENAI_HEADERS)
    const file = FILES[asText(format)]
    if (file === undefined) return refuse(`Input should be one of ${SPEECH_FORMATS.join(', ')}`, 'response_format')
    return fileReply(file.type, Buffer.concat([file.mark, drawSound(text)]), OPENAI_HEADERS)
  },
}

function refuse(message: string, param: string): never {
  throw new RefusedCall(openaiInvalid(message, param))
}

const WHISPER = ['json', 'text', 'srt', 'vtt', 'verbose_json']
const TRANSCRIPTION_FORMATS: ReadonlyMap<string, readonly string[]> = new Map([
  ['gpt-transcribe', ['json', 'text']],
  ['gpt-4o-transcribe', ['json']],
  ['gpt-4o-mini-transcribe', ['json']],
  ['gpt-4o-transcribe-diarize', ['json', 'text', 'diarized_json']],
  ['whisper-1', WHISPER],
])
/** Models that report seconds instead of tokens. */
const TIMED_MODELS: ReadonlySet<string> = new Set(['gpt-transcribe', 'whisper-1'])
const EXTENSION = /\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/i
const LISTS = [
  'timestamp_granularities',
  'include',
  'known_speaker_names',
  'known_speaker_references',
  'keywords',
  'languages',
]
const TOKENS_PER_SECOND = 10
/** Values that Whisper reports for every segment in addition to its text. */
const MEASURES = { tokens: [50364], temperature: 0, avg_logprob: -0.2, compression_ratio: 1.1, no_speech_prob: 0.01 }

/**
 * OpenAI: `POST /v1/audio/transcriptions`. The text states how long the recording is. There are ten tokens per second and one per
 * word; `text`, `srt` and `vtt` report nothing.
 */
export const OPENAI_TRANSCRIPTIONS: SandboxOperation = {
  vendor: 'openai',
  operation: 'transcriptions',
  errors: OPENAI_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/audio/transcriptions',
  promptText: (_body, call) => fieldOf(formParts(call), 'prompt'),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const model = fieldOf(formParts(call), 'model')
    const formats = TRANSCRIPTION_FORMATS.get(model)
    if (formats === undefined) throw new RefusedCall(OPENAI_ERRORS.status(404))
    return answered(call, context, { formats, isByTime: TIMED_MODELS.has(model), streams: model !== 'whisper-1' })
  },
}

/** The servers of `signalbox/presets` that serve Whisper. */
export const PRESET_TRANSCRIPTIONS: SandboxOperation = {
  ...OPENAI_TRANSCRIPTIONS,
  vendor: 'presets',
  matches: ({ method, path }) => method === 'POST' && /^\/presets\/[^/]+\/v1\/audio\/transcriptions$/.test(path),
  answer: (call, context) => answered(call, context, { formats: WHISPER, isByTime: true, streams: false }),
}

interface ModelFacts {
  readonly formats: readonly string[]
  readonly isByTime: boolean
  readonly streams: boolean
}

function answered(call: IncomingCall & SandboxCall, context: AnswerContext, facts: ModelFacts): SandboxReply {
  const parts = formParts(call)
  refuseRepeatedParts(parts, LISTS)
  const file = parts?.find(({ name }) => name === 'file')
  if (file?.filename === undefined) refuse("Missing required parameter: 'file'.", 'file')
  if (!EXTENSION.test(file.filename)) refuse(`Unrecognized file format: ${file.filename}.`, 'file')
  const format = fieldOf(parts, 'response_format') || 'json'
  if (!facts.formats.includes(format))
    refuse(`response_format '${format}' is not compatible with this model.`, 'response_format')
  const heard = heardRecording(file.bytes, context.script)
  if (heard === undefined) refuse('The audio file could not be decoded or its format is not supported.', 'file')
  const usage = context.usage(facts.isByTime ? timeOf(heard) : tokensOf(heard))
  if (facts.streams && fieldOf(parts, 'stream') === 'true') return events(heard, usage, format)
  const times = context.usage({ duration: heard.seconds })
  switch (format) {
    case 'verbose_json':
      return jsonReply(200, OPENAI_HEADERS, {
        ...{ task: 'transcribe', language: 'english', ...times, text: heard.text },
        segments: heard.segments.map((segment, id) => ({ id, seek: 0, ...segment, ...MEASURES })),
        usage,
      })
    case 'diarized_json':
      return jsonReply(200, OPENAI_HEADERS, {
        ...{ task: 'transcribe', ...times, text: heard.text },
        segments: heard.segments.map((segment, index) => speech(segment, index)),
        usage,
      })
    case 'json':
      return jsonReply(200, OPENAI_HEADERS, { text: heard.text, usage })
    default:
      return fileReply('text/plain; charset=utf-8', new TextEncoder().encode(heard.text), OPENAI_HEADERS)
  }
}

function speech(segment: object, index: number): object {
  return { type: 'transcript.text.segment', id: `seg_${index}`, speaker: index % 2 === 0 ? 'A' : 'B', ...segment }
}

function events(heard: HeardRecording, usage: object | undefined, format: string): SandboxReply {
  const delta = (text: string): string => sseData(JSON.stringify({ type: 'transcript.text.delta', delta: text }))
  const segments = format === 'diarized_json' ? heard.segments : []
  const done = sseData(JSON.stringify({ type: 'transcript.text.done', text: heard.text, usage }))
  return streamReply(
    OPENAI_HEADERS,
    [
      ...heard.text.split(/(?<=\s)/).map(delta),
      ...segments.map((segment, index) => sseData(JSON.stringify(speech(segment, index)))),
      done,
    ],
    delta('more '),
  )
}

function timeOf({ seconds }: HeardRecording): object {
  return { type: 'duration', seconds }
}

function tokensOf({ seconds, tokens }: HeardRecording): object {
  const audio = Math.ceil(seconds * TOKENS_PER_SECOND)
  return {
    type: 'tokens',
    input_tokens: audio,
    input_token_details: { audio_tokens: audio, text_tokens: 0 },
    output_tokens: tokens,
    total_tokens: audio + tokens,
  }
}

function fieldOf(parts: readonly FormPart[] | undefined, name: string): string {
  return parts?.find((part) => part.name === name)?.bytes.toString('utf8') ?? ''
}
