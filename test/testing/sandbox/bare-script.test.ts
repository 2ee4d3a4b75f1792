import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { bundledPrograms } from '../../support/bundled-programs.ts'

const start = bundledPrograms([join(import.meta.dirname, 'support/bare-script.ts')])

test('a script that awaits delayed answers in process gets them, and then ends', async () => {
  const script = start('bare-script', [], { stdio: ['ignore', 'pipe', 'inherit'] })

  const [written, [code]] = await Promise.all([text(script.stdout!), once(script, 'exit')])

  expect([code, written]).toEqual([0, '["late","one two"]'])
})
