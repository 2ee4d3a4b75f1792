import { isJsonObject, isSet } from '../../core/json.ts'
import {
  namesByKind,
  numberedToKinds,
  referenceKind,
  type VideoIntent,
  type VideoProtocolName,
  type VideoReference,
} from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { isReference, SINGLE_MEDIA } from './wan-2-7.ts'

/** A body read as an intent. */
export interface ReadIntent {
  readonly intent: VideoIntent
  /** Path of each field of the intent in the body: `firstFrame` → `input.img_url`. */
  readonly origins: ReadonlyMap<string, string>
  /** Members of the body that an intent cannot represent. */
  readonly unread: readonly string[]
}

const READERS: Readonly<Record<VideoProtocolName, (request: VideoRequest) => ReadIntent>> = {
  'wan-2-6': readWan26,
  'wan-2-7': readWan27,
}

/** Converts a parsed request to an intent and lists members that an intent cannot represent. */
export function readIntent(request: VideoRequest, protocol: VideoProtocolName): ReadIntent {
  return READERS[protocol](request)
}

/** A field of {@link VideoIntent}. */
type VideoIntentField = keyof VideoIntent

type Mutable = { -readonly [Field in VideoIntentField]?: VideoIntent[Field] }

/** Collects an intent from the members of a request and records where each was found and which were not read. */
export class IntentReader {
  readonly origins = new Map<string, string>([
    ['resolution', 'resolution'],
    ['aspectRatio', 'aspect_ratio'],
    ['seconds', 'duration'],
  ])

  readonly #request: VideoRequest
  readonly #fields: Mutable = {}
  readonly #read = new Set<string>()
  readonly #unread: string[] = []

  constructor(request: VideoRequest) {
    this.#request = request
  }

  /** Returns the value of a member, such as `input.prompt`. */
  member(param: string): unknown {
    const [section, name = ''] = param.split('.')
    const members = section === 'input' ? this.#request.input : this.#request.parameters
    return members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined
  }

  /** Reads a member as a field that no other member has set, unless it has another type. */
  read<Field extends VideoIntentField>(
    param: string,
    field: Field,
    type: 'string' | 'boolean' | 'integer' = 'string',
  ): void {
    const value = this.member(param)
    const isOfType = type === 'integer' ? Number.isInteger(value) : typeof value === type
    if (isOfType && this.#fields[field] === undefined) this.set(param, field, value as VideoIntent[Field])
  }

  /** Reads the parameters that {@link writtenSettings} writes. */
  settings(): void {
    this.read('parameters.prompt_extend', 'promptExtend', 'boolean')
    this.read('parameters.watermark', 'watermark', 'boolean')
    this.read('parameters.seed', 'seed', 'integer')
  }

  /** Sets a field whose value was derived from a member. */
  set<Field extends VideoIntentField>(param: string, field: Field, value: VideoIntent[Field]): void {
    this.#fields[field] = value
    this.#read.add(param)
    this.origins.set(field, param)
  }

  /** Marks a member as read if it only repeats a default or a top-level field. */
  skip(param: string): void {
    this.#read.add(param)
  }

  /** Lists a member that an intent cannot represent. */
  refuse(param: string): void {
    this.#unread.push(param)
  }

  done(): ReadIntent {
    const { input, parameters = {}, resolution, aspect_ratio, duration } = this.#request
    const params = [
      ...Object.entries(input).map(([name, value]) => ({ param: `input.${name}`, value })),
      ...Object.entries(parameters).map(([name, value]) => ({ param: `parameters.${name}`, value })),
    ]
    const left = params.filter(({ param, value }) => isSet(value) && !this.#read.has(param)).map(({ param }) => param)
    return {
      intent: { ...this.#fields, resolution, aspectRatio: aspect_ratio, seconds: duration },
      origins: this.origins,
      unread: [...left, ...this.#unread],
    }
  }
}

/** References whose file names do not identify them as image or video are listed as unread. */
function readWan26(request: VideoRequest): ReadIntent {
  const reader = new IntentReader(request)
  const references = readReferences(reader)
  reader.read('input.prompt', 'prompt')
  const prompt = reader.member('input.prompt')
  if (typeof prompt === 'string' && references.length > 0) {
    // Phrases such as `Image 1` would become names of references.
    if (namesByKind(prompt, references)) reader.refuse('input.prompt')
    reader.set('input.prompt', 'prompt', numberedToKinds(prompt, references))
  }
  reader.read('input.negative_prompt', 'negativePrompt')
  // Some of the vendor's pages put it here.
  reader.read('parameters.negative_prompt', 'negativePrompt')
  reader.read('input.img_url', 'firstFrame')
  reader.read('input.audio_url', 'audio')
  reader.settings()
  if (reader.member('parameters.audio') === false) reader.set('parameters.audio', 'mute', true)
  else if (reader.member('parameters.audio') === true) reader.skip('parameters.audio')
  if (reader.member('parameters.shot_type') === 'single') reader.skip('parameters.shot_type')
  else reader.read('parameters.shot_type', 'shotType')
  for (const billed of ['duration', 'size', 'resolution']) reader.skip(`parameters.${billed}`)
  return reader.done()
}

function readReferences(reader: IntentReader): VideoReference[] {
  const references: VideoReference[] = []
  // The older of the two fields contains only videos.
  for (const [param, knownKind] of [
    ['input.reference_urls', undefined],
    ['input.reference_video_urls', 'video'],
  ] as const) {
    const urls = reader.member(param)
    if (!Array.isArray(urls)) continue
    reader.skip(param)
    for (const [index, url] of urls.entries()) {
      if (typeof url !== 'string') {
        reader.refuse(`${param}[${index}]`)
        continue
      }
      const kind = knownKind ?? referenceKind(url)
      if (kind === undefined) reader.refuse(`${param}[${index}]`)
      reader.origins.set(`references[${references.length}]`, `${param}[${index}]`)
      references.push({ kind: kind ?? 'image', url })
    }
  }
  if (references.length > 0) reader.set('input.reference_urls', 'references', references)
  return references
}

function readWan27(request: VideoRequest): ReadIntent {
  const reader = new IntentReader(request)
  reader.read('input.prompt', 'prompt')
  reader.read('input.negative_prompt', 'negativePrompt')
  const media = reader.member('input.media')
  if (Array.isArray(media)) readMedia(reader, media)
  else reader.read('input.audio_url', 'audio')
  reader.settings()
  // The vendor accepts `shot_type` and ignores it.
  for (const name of ['duration', 'resolution', 'ratio', 'shot_type']) reader.skip(`parameters.${name}`)
  return reader.done()
}

function readMedia(reader: IntentReader, media: readonly unknown[]): void {
  reader.skip('input.media')
  const references: VideoReference[] = []
  const seen = new Set<string>()
  for (const [index, item] of media.entries()) {
    const param = `input.media[${index}]`
    if (!isJsonObject(item) || typeof item['url'] !== 'string') {
      reader.refuse(param)
      continue
    }
    const { type, url, reference_voice: voice, ...rest } = item
    for (const name of Object.keys(rest)) reader.refuse(`${param}.${name}`)
    const field = SINGLE_MEDIA.get(type)
    const isListed = isReference(type)
    if (isSet(voice) && !(isListed && typeof voice === 'string')) reader.refuse(`${param}.reference_voice`)
    if (isListed) {
      reader.origins.set(`references[${references.length}]`, param)
      reader.origins.set(`references[${references.length}].voice`, `${param}.reference_voice`)
      const kind = type === 'reference_video' ? 'video' : 'image'
      references.push({ kind, url, ...(typeof voice === 'string' ? { voice } : {}) })
    } else if (field === undefined || seen.has(field)) reader.refuse(param)
    else {
      seen.add(field)
      reader.set('input.media', field, url)
      reader.origins.set(field, param)
    }
  }
  if (references.length > 0) reader.set('input.media', 'references', references)
}
