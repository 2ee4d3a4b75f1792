import { expect, test } from 'vitest'
import { configJsonSchema } from '../../src/cli/configuration.ts'
import { SETTINGS } from '../../src/cli/settings.ts'

const schema = configJsonSchema()

test('the schema in the package is that of the code; npm run config:schema writes it', async () => {
  await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot('../../schemas/signalbox.config.schema.json')
})

test('the schema describes every setting in the words of the help', () => {
  const { properties } = schema as { properties: Record<string, { properties?: object; description?: string }> }

  for (const { member = '', text } of SETTINGS) {
    const [name = '', inner] = member.split('.')
    const place =
      inner === undefined ? properties[name] : (properties[name]?.properties as typeof properties | undefined)?.[inner]
    expect(place?.description, member).toBe(text)
  }
})
