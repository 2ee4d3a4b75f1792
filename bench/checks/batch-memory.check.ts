import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const LINES = 4_000

/** Client, gateway and vendor in one process; most of it is Node and the package. The requests have 5 MB. */
const MAX_MEBIBYTES = 220

test.each(['files', 'messages'])(
  `a batch of ${LINES} lines by %s is answered whole, within ${MAX_MEBIBYTES} MiB`,
  async (dialect) => {
    const bench = join(import.meta.dirname, '../batches.mjs')
    const { stdout } = await run(process.execPath, [bench, String(LINES), dialect])

    const [, peak = ''] = /peak RSS (\d+) MiB/.exec(stdout) ?? []
    expect([stdout, Number(peak) > 0 && Number(peak) < MAX_MEBIBYTES]).toEqual([stdout, true])
  },
)
