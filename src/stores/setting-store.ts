import type { MaybePromise } from '../core/maybe-promise.ts'

/** Numbers that apply to all processes of a store, by name. */
export type Settings = Readonly<Record<string, number>>

/** Settings that processes share. Names are at most 100 characters of ASCII. */
export interface SettingStore {
  /** Returns the settings that were written. */
  read(): MaybePromise<Settings>
  /** Writes all of the given settings or none, and keeps the others. A value may be `Infinity`, but not NaN. */
  write(settings: Settings): MaybePromise<void>
}
