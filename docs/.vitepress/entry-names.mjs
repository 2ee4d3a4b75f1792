import { Converter } from 'typedoc'

/** Entries of the package by their files, where the name of the file is not that of the entry. */
const NAMES = new Map([
  ['index', 'signalbox'],
  ['client/builders', 'signalbox/builders'],
  ['stores/postgres/postgres-store', 'signalbox/postgres'],
  ['stores/redis/redis-limits', 'signalbox/redis'],
  ['stores/sqlite/sqlite-store', 'signalbox/sqlite'],
])

/** Calls the modules of the reference what hosts write in an import. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const entry of project.children ?? []) {
      entry.name = NAMES.get(entry.name) ?? `signalbox/${entry.name.replace(/^adapters\//, '')}`
    }
  })
}
