import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'

/** How long the rows of a store are kept, in days; `Infinity`: indefinitely. */
export interface RetentionDays extends Required<{ readonly [Kind in keyof UsageRetentionDays]: number }> {
  /** Tasks that have ended, with their messages. */
  readonly taskDays: number
}

type Kind = keyof RetentionDays

/** Retention if neither a process nor the store names one. */
const DEFAULT_DAYS: RetentionDays = { recordDays: 30, hourDays: 400, dayDays: Number.POSITIVE_INFINITY, taskDays: 90 }

/** Option of each kind, which is also the name of its setting. */
const OPTIONS: Readonly<Record<Kind, string>> = {
  recordDays: 'usage.retention.recordDays',
  hourDays: 'usage.retention.hourDays',
  dayDays: 'usage.retention.dayDays',
  taskDays: 'taskRetentionDays',
}

const KINDS = Object.keys(OPTIONS) as readonly Kind[]

/**
 * Retention that all processes of a store share, so that no process deletes by its own default what another one keeps. The value that was
 * named last applies. A store without settings leaves each process its own options.
 */
export class Retention {
  readonly #settings: SettingStore | undefined
  readonly #named: { readonly [Name in Kind]?: number | undefined }
  readonly #warn: (message: string) => void

  /**
   * @param named the options of this process.
   * @param warn reports an option that differs from the store. May get the same message again.
   */
  constructor(
    settings: SettingStore | undefined,
    named: { readonly [Name in Kind]?: number | undefined },
    warn: (message: string) => void,
  ) {
    this.#settings = settings
    this.#named = named
    this.#warn = warn
  }

  /** Writes the options of this process to the store. Processes of other kinds, such as commands, only read. */
  async write(): Promise<void> {
    const stored = (await this.#settings?.read()) ?? {}
    const changed: Record<string, number> = {}
    for (const kind of KINDS) {
      const [option, days] = [OPTIONS[kind], this.#named[kind]]
      const old = stored[option]
      if (days === undefined || days === old) continue
      changed[option] = days
      if (old !== undefined)
        this.#warn(
          `${option} is ${days} in this process and was ${old} in the store. ${days} applies to all processes of the store from now on.`,
        )
    }
    if (Object.keys(changed).length > 0) await this.#settings?.write(changed)
  }

  /** Returns the retention in force: of the store, otherwise of this process, otherwise the default. */
  async days(): Promise<RetentionDays> {
    const stored = (await this.#settings?.read()) ?? {}
    const days: Record<Kind, number> = { ...DEFAULT_DAYS }
    for (const kind of KINDS) {
      const [option, own] = [OPTIONS[kind], this.#named[kind]]
      const shared = stored[option]
      days[kind] = shared ?? own ?? days[kind]
      if (own !== undefined && shared !== undefined && own !== shared)
        this.#warn(
          `${option} is ${own} in this process and ${shared} in the store. ${shared} applies to all processes of the store. Set the same value in all of them.`,
        )
    }
    return days
  }
}

/** Numbers that apply to all processes of a store, by name. */
export type Settings = Readonly<Record<string, number>>

/** Settings that processes share. Names are at most 100 characters of ASCII. */
export interface SettingStore {
  /** Returns the settings that were written. */
  read(): MaybePromise<Settings>
  /** Writes all of the given settings or none, and keeps the others. A value may be `Infinity`, but not NaN. */
  write(settings: Settings): MaybePromise<void>
}
