package wire_test

import "strings"

// badVectors must be refused by every decoder, without a panic and without
// taking memory for what they declare.
func badVectors() map[string]string {
	deepMap := "\x81\xa5state" + strings.Repeat("\x81\xa1a", 64) + "\xc0"
	deepSkip := "\x81\xa4more" + strings.Repeat("\x91", 64) + "\xc0"
	value := func(v string) string { return "\x81\xa7updates\x91\x83\xa3key\xa1k\xa2op\xa3set\xa5value" + v }
	return map[string]string{
		"reply.empty":                   "",
		"reply.never_used":              "\xc1",
		"reply.not_a_map":               "\x93\x01\x02\x03",
		"reply.text":                    "\xa2{}",
		"reply.trailing":                "\x80\x80",
		"reply.key_without_value":       "\x81\xa7updates",
		"reply.truncated_key":           "\x81\xa7upd",
		"reply.truncated_header":        "\x81\xa7updates\xdd\x00\x00",
		"reply.huge_map":                "\xdf\x80\x00\x00\x00",
		"reply.huge_array":              "\x81\xa7updates\xdd\x7f\xff\xff\xff",
		"reply.huge_unknown_array":      "\x81\xa4more\xdd\xff\xff\xff\xff",
		"reply.huge_value_map":          value("\xdf\x7f\xff\xff\xff"),
		"reply.huge_value_text":         value("\xdb\x7f\xff\xff\xff"),
		"reply.huge_value_binary":       value("\xc6\xff\xff\xff\xff"),
		"reply.count_beyond_input":      value("\x92\x01"),
		"reply.map_in_place_of_array":   "\x81\xa7updates\x80",
		"reply.array_in_place_of_map":   "\x81\xa4gate\x91\xa5block",
		"reply.number_in_place_of_text": "\x81\xa7updates\x91\x81\xa3key\x01",
		"reply.binary_in_place_of_text": "\x81\xa7updates\x91\x81\xa3key\xc4\x01k",
		"reply.truth_as_number":         "\x81\xa7effects\x91\x82\xa4type\xa4emit\xa7context\x82\xa3key\xa1k\xaapersistent\x01",
		"reply.number_key":              "\x81\x01\x02",
		"reply.nil_key":                 "\x81\xc0\x02",
		"reply.number_key_in_value":     value("\x81\x01\x02"),
		"reply.number_key_in_unknown":   "\x81\xa4more\x81\x01\x02",
		"reply.key_twice":               "\x82\xa7updates\x90\xa7updates\x90",
		"reply.key_twice_in_value":      value("\x82\xa1a\x01\xa1a\x02"),
		"reply.value_twice":             "\x81\xa7updates\x91\x84\xa3key\xa1k\xa2op\xa3set\xa5value\xa1a\xa5value\x01",
		"reply.extension":               value("\xd6\xff\x00\x00\x00\x00"),
		"reply.extension_unknown":       "\x81\xa4more\xc7\x01\x05\x00",
		"reply.not_a_number":            value("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01"),
		"reply.infinite":                value("\xca\x7f\x80\x00\x00"),
		"reply.infinite_unknown":        "\x81\xa4more\xcb\xff\xf0\x00\x00\x00\x00\x00\x00",
		"event.fraction_as_integer":     "\x81\xa4step\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00",
		"event.integer_too_large":       "\x81\xa4step\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		"event.deep":                    deepMap,
		"event.deep_unknown":            deepSkip,
		"decision.text_as_truth":        "\x82\xa7allowed\xa4true\xa6reason\xa7allowed",
		"summary.nil_in_array":          "\x91\xc0",
		"description.text_as_range":     "\x83\xa4name\xa1n\xa7version\xa11\xa3abi\xa11",
	}
}

// lenientVectors are not as we would write them, but legal: they decode to the
// value in JSON.
func lenientVectors() map[string][2]string {
	return map[string][2]string{
		"event.integers_as_floats":   {"\x82\xa4step\xcb\x40\x08\x00\x00\x00\x00\x00\x00\xaemessages_total\xca\x40\xa0\x00\x00", `{"step":3,"messages_total":5}`},
		"event.wide_integers":        {"\x82\xa4step\xd3\x00\x00\x00\x00\x00\x00\x00\x03\xaemessages_total\xcf\x00\x00\x00\x00\x00\x00\x00\x05", `{"step":3,"messages_total":5}`},
		"event.wide_headers":         {"\xdf\x00\x00\x00\x02\xd9\x04step\xcd\x00\x03\xda\x00\x05phase\xdb\x00\x00\x00\x08step_end", `{"phase":"step_end","step":3}`},
		"event.nil_is_absent":        {"\x85\xa4step\xc0\xa5phase\xc0\xa8messages\xc0\xa4call\xc0\xa3run\xc0", `{}`},
		"event.unknown_fields":       {"\x85\xa4step\x03\xa5later\x81\xa1a\x93\x01\xc4\x01\x00\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xa1x\xd1\xff\x00\xa1y\xa1z\xa1z\xc3", `{"step":3}`},
		"event.nil_message":          {"\x81\xa8messages\x91\xc0", `{"messages":[{}]}`},
		"reply.integer_as_float":     {"\x81\xa7effects\x91\x82\xa4type\xb2override_inference\xa8override\x81\xa5top_p\x01", `{"effects":[{"type":"override_inference","override":{"top_p":1}}]}`},
		"reply.nil":                  {"\xc0", `{}`},
		"reply.deepest":              {"\x81\xa4more" + strings.Repeat("\x91", 63) + "\xc0", `{}`},
		"reply.unsigned_beyond_int":  {"\x81\xa7updates\x91\x83\xa3key\xa1k\xa2op\xa3set\xa5value\xcf\x80\x00\x00\x00\x00\x00\x00\x00", `{"updates":[{"key":"k","op":"set","value":9223372036854775808}]}`},
		"reply.float32":              {"\x81\xa7updates\x91\x83\xa3key\xa1k\xa2op\xa3set\xa5value\xca\x3e\x80\x00\x00", `{"updates":[{"key":"k","op":"set","value":0.25}]}`},
		"decision.fields_in_order_z": {"\x82\xa6reason\xa8cooldown\xa7allowed\xc2", `{"reason":"cooldown"}`},
	}
}
