import { mistakesBetween } from '../core/known-members.ts'
import { SETTINGS } from './settings.ts'
import type { Environment } from './terminal.ts'

const PREFIX = 'SIGNALBOX_'

/** Of letters; two that have changed places are one mistake. */
const MOST_MISTAKES = 1

/** What Kubernetes sets for a service that is called after the gateway. */
const SERVICE = /_(?:SERVICE_(?:HOST|PORT(?:_.*)?)|PORT(?:_.*)?)$/

const KNOWN: readonly string[] = [...SETTINGS.map(({ variable }) => variable), `${PREFIX}CONFIG`].flatMap((name) =>
  name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : [],
)

/**
 * Variables that are set and are no settings, but nearly one: a limit whose name is misspelt would be no limit. Others with this prefix
 * may be the host's own, or Kubernetes' about a service of this name.
 */
export function misspeltVariables(environment: Environment): string[] {
  return Object.entries(environment).flatMap(([name, value = '']) => {
    const own = name.slice(PREFIX.length)
    if (!name.startsWith(PREFIX) || KNOWN.includes(own) || SERVICE.test(name) || value.trim() === '') return []
    const meant = KNOWN.find((known) => mistakesBetween(own, known, MOST_MISTAKES) <= MOST_MISTAKES)
    return meant === undefined ? [] : [`${name} is no setting; did you mean ${PREFIX}${meant}?`]
  })
}
