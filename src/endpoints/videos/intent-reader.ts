import { isGiven } from './video-fault.ts'
import type { ReadIntent, VideoIntent, VideoIntentField } from './video-intent.ts'
import type { VideoRequest } from './video-request.ts'

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

  /** Sets a field that was made of a member in another way. */
  set<Field extends VideoIntentField>(param: string, field: Field, value: VideoIntent[Field]): void {
    this.#fields[field] = value
    this.#note(param, field)
  }

  /** Marks a member as read that says nothing beyond a default or the top-level fields. */
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
