import type { ModelFacts, VideoAbilities } from '../../catalog/model-facts.ts'
import { isGiven, type VideoParts, type VideoRequest } from './video-request.ts'

/** A picture or video whose subject appears in the video. */
export interface VideoReference {
  readonly kind: 'image' | 'video'
  readonly url: string
  /** URL of a recording of the subject's voice. */
  readonly voice?: string
}

/** What to render, in a protocol-neutral layout. An absent field gets the vendor's default. */
export interface VideoIntent {
  /** References are named `Image 1`, `Video 1`: pictures and videos are counted apart, in the order of `references`. */
  readonly prompt?: string
  readonly negativePrompt?: string
  /** URL of the picture that the video begins with. */
  readonly firstFrame?: string
  /** URL of the picture that the video ends with. */
  readonly lastFrame?: string
  /** URL of a video that is continued; its seconds are part of `seconds`. */
  readonly firstClip?: string
  readonly references?: readonly VideoReference[]
  /** URL of the sound track. */
  readonly audio?: string
  /** `480p`, `720p`, `1080p`. */
  readonly resolution: string
  /** `16:9`, which is also the default. With a first frame or clip, the picture decides. */
  readonly aspectRatio?: string
  /** Whole seconds. */
  readonly seconds: number
  readonly seed?: number
  readonly watermark?: boolean
  /** Lets the vendor rewrite the prompt. */
  readonly promptExtend?: boolean
  /** `single` (the default) or `multi`. */
  readonly shotType?: string
  /** True: without sound. */
  readonly mute?: boolean
}

/** A field of {@link VideoIntent}. */
type VideoIntentField = keyof VideoIntent

/** A body read as an intent. */
export interface ReadIntent {
  readonly intent: VideoIntent
  /** Where each field of the intent was found: `firstFrame` → `input.img_url`. */
  readonly origins: ReadonlyMap<string, string>
  /** Members of the body that an intent cannot hold. */
  readonly unread: readonly string[]
}

/** An intent written in a protocol. */
export interface WrittenIntent extends VideoParts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Fields of the intent that the protocol or the model cannot express; of references `references[1].voice`. */
  readonly impossible: readonly string[]
}

/** Name of a body layout, as catalog rows carry it. */
export type VideoProtocolName = 'wan-2-6' | 'wan-2-7'

/** The model facts that a protocol needs. Without `video`, the vendor checks what depends on it. */
export type VideoModelFacts = Pick<ModelFacts, 'id' | 'protocol' | 'video'>

/** A field that belongs to another protocol. */
export interface MisplacedField {
  /** `input.img_url`. */
  readonly param: string
  /** Its path in this protocol: `input.media`. */
  readonly use: string
}

/** One layout of `input` and `parameters` (API specification, "Video generation request"). All functions are pure. */
export interface VideoProtocol {
  readonly name: VideoProtocolName
  /** For messages: `a 2.7 model`. */
  readonly describedAs: string
  /** Characters of a prompt that the vendor reads; it cuts off the rest. */
  readonly maxPromptCharacters: number
  /** The first field that only the other protocol has; undefined when there is none. */
  misplacedField(parts: VideoParts, model: VideoModelFacts): MisplacedField | undefined
  /**
   * Checks what the model's kind requires.
   * @throws GatewayError `invalid_request` naming the field.
   */
  check(parts: VideoParts, model: VideoModelFacts): void
  /** Is a video among the references? That shortens the longest video of a model. */
  holdsReferenceVideo(parts: VideoParts): boolean
  /**
   * The parameters for the vendor: the caller's, with those added that decide the bill and are missing there. Nothing else
   * is touched, and order is kept.
   * @throws GatewayError `invalid_request` naming `aspect_ratio` when the tier has no size of that ratio.
   */
  fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown>
  readIntent(request: VideoRequest): ReadIntent
  writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent
}

type Mutable = { -readonly [Field in VideoIntentField]?: VideoIntent[Field] }
type FieldOf<Value> = {
  [Field in VideoIntentField]-?: Value extends NonNullable<VideoIntent[Field]> ? Field : never
}[VideoIntentField]

/** Collects an intent from the members of a request, and remembers where each was found and what was not read. */
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

  /** The member's value, now read: `input.prompt`. */
  member(param: string): unknown {
    const [section, name = ''] = param.split('.')
    const members = section === 'input' ? this.#request.input : this.#request.parameters
    return members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined
  }

  text(param: string, field: FieldOf<string>): void {
    const value = this.member(param)
    if (typeof value !== 'string' || this.#fields[field] !== undefined) return
    this.#fields[field] = value
    this.#note(param, field)
  }

  flag(param: string, field: FieldOf<boolean>): void {
    const value = this.member(param)
    if (typeof value !== 'boolean') return
    this.#fields[field] = value
    this.#note(param, field)
  }

  integer(param: string, field: FieldOf<number>): void {
    const value = this.member(param)
    if (!Number.isInteger(value)) return
    this.#fields[field] = Number(value)
    this.#note(param, field)
  }

  /** Reads the parameters that {@link writtenSettings} writes. */
  settings(): void {
    this.flag('parameters.prompt_extend', 'promptExtend')
    this.flag('parameters.watermark', 'watermark')
    this.integer('parameters.seed', 'seed')
  }

  /** Sets a field whose value was derived from a member. */
  set<Field extends VideoIntentField>(param: string, field: Field, value: VideoIntent[Field]): void {
    this.#fields[field] = value
    this.#note(param, field)
  }

  /** Marks a member as read that only repeats a default or a top-level field. */
  skip(param: string): void {
    this.#read.add(param)
  }

  /** Lists something that an intent cannot hold. */
  refuse(param: string): void {
    this.#unread.push(param)
  }

  done(): ReadIntent {
    const { input, parameters = {}, resolution, aspect_ratio, duration } = this.#request
    const params = [
      ...Object.entries(input).map(([name, value]) => ({ param: `input.${name}`, value })),
      ...Object.entries(parameters).map(([name, value]) => ({ param: `parameters.${name}`, value })),
    ]
    const left = params.filter(({ param, value }) => isGiven(value) && !this.#read.has(param)).map(({ param }) => param)
    return {
      intent: { ...this.#fields, resolution, aspectRatio: aspect_ratio, seconds: duration },
      origins: this.origins,
      unread: [...left, ...this.#unread],
    }
  }

  #note(param: string, field: VideoIntentField): void {
    this.#read.add(param)
    this.origins.set(field, param)
  }
}

/** The parameters that every layout writes alike; absent if the intent does not set them. */
export function writtenSettings({ promptExtend, watermark, seed }: VideoIntent): Record<string, unknown> {
  return {
    ...(promptExtend === undefined ? {} : { prompt_extend: promptExtend }),
    ...(watermark === undefined ? {} : { watermark }),
    ...(seed === undefined ? {} : { seed }),
  }
}

/** The kind of model that an intent needs, for models without a kind in the catalog. */
export function taskOfIntent(intent: VideoIntent): VideoAbilities['task'] {
  if ((intent.references ?? []).length > 0) return 'r2v'
  const isFromPicture = intent.firstFrame ?? intent.lastFrame ?? intent.firstClip
  return isFromPicture === undefined ? 't2v' : 'i2v'
}
